"""Works for `{"seconds": s}`, or until the file `hold` exists, but not for clients that left.

Marks start and end in the file `mark`.
"""

import json
import os
import time

from msx_sdk import Handler


class Slow(Handler):
    def handle(self, data, context):
        return [self.work(idx, order_of(row), context) for idx, row in enumerate(data)]

    def work(self, idx, order, context):
        mark(order, "started")
        end = time.monotonic() + order["seconds"]
        while time.monotonic() < end and not context.cancelled(idx) and not os.path.exists(order.get("hold", "")):
            time.sleep(0.01)
        mark(order, "cancelled" if context.cancelled(idx) else "done")
        return {"slept": order["seconds"]}


def mark(order, line):
    if "mark" in order:
        with open(order["mark"], "a") as file:
            file.write(line + "\n")


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
