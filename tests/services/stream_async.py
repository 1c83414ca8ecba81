"""Streams `{"count": n}` numbers, `pause` seconds apart, many requests at once. Marks its end in the file `mark`."""

import asyncio


async def handle(data, context):
    order = data[0]["body"]
    try:
        for n in range(1, order["count"] + 1):
            await asyncio.sleep(order.get("pause", 0))
            yield [f"{n}\n"]
    finally:
        mark(order, "closed")


def mark(order, line):
    if "mark" in order:
        with open(order["mark"], "a") as file:
            file.write(line + "\n")
