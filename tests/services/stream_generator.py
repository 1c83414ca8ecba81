"""Streams `{"count": n}` numbers to each request; the shorter ones end early. Marks its end in the file `mark`."""

import time

from msx_sdk import Handler, Last


class StreamGenerator(Handler):
    def handle(self, data, context):
        orders = [row["body"] for row in data]
        try:
            for n in range(1, max(order["count"] for order in orders) + 1):
                time.sleep(max(order.get("pause", 0) for order in orders))
                yield [piece(n, order["count"]) for order in orders]
        finally:
            mark(orders, "closed")


def piece(n, count):
    if n > count:
        return None
    return Last(f"{n}\n") if n == count else f"{n}\n"


def mark(orders, line):
    for order in orders:
        if "mark" in order:
            with open(order["mark"], "a") as file:
                file.write(line + "\n")
