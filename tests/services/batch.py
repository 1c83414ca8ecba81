"""Tells the length of its batch. `mark` names a file that says that it has begun, `hold` one to wait for; `bad` is how
to fail: `item` or `raise`."""

import os
import time

from msx_sdk import Handler, InvalidInput

REFUSAL = InvalidInput("body: expected anything but bad")


class Batches(Handler):
    def inference(self, inputs):
        orders = [row["body"] for row in inputs]
        if any(order.get("bad") == "raise" for order in orders):
            raise REFUSAL
        for order in orders:
            hold(order)
        return [REFUSAL if order.get("bad") else {"n": order["n"], "batch": len(inputs)} for order in orders]


def hold(order):
    if "mark" in order:
        open(order["mark"], "w").close()
    while "hold" in order and not os.path.exists(order["hold"]):
        time.sleep(0.005)
