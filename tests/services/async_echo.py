"""Answers after `{"seconds": s}`, and once the file `hold` exists, many requests at once.

Marks start, cancel and end in the file `mark`.
"""

import asyncio
import json
import os


async def handle(data, context):
    order = order_of(data[0])
    mark(order, "started")
    try:
        await asyncio.sleep(order.get("seconds", 0))
        while "hold" in order and not os.path.exists(order["hold"]):
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        mark(order, "cancelled")
        raise
    mark(order, "done")
    return [order]


def mark(order, line):
    if "mark" in order:
        with open(order["mark"], "a") as file:
            file.write(line + "\n")


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
