"""Does on one rank what the header `x-order` says: `{"rank": 1, "way": "exit"}`; without one it echoes.

`steps` makes a stream, each step of which waits for a file of its number in the folder `gates`; the fault is then at
the step `at`. `others: wait` lets the other ranks wait for ever, `others: all_reduce` or `send` as in a collective. In
model-config.yaml `load` is such an order for `initialize`, and `deaf` the rank that does not end by itself.
"""

import json
import os
import signal
import threading
import time

from msx_sdk.mindspore import collectives


def fail(rank):
    raise RuntimeError(f"rank {rank} is out of luck")


WAYS = {
    "raise": fail,
    "hang": lambda rank: threading.Event().wait(),
    "exit": lambda rank: os._exit(3),
    "kill": lambda rank: os.kill(os.getpid(), signal.SIGKILL),
    "freeze": lambda rank: os.kill(os.getpid(), signal.SIGSTOP),
}


class Faults:
    def initialize(self, context):
        self.rank, config = context.rank, context.model_yaml_config
        self.deaf = config.get("deaf") == self.rank
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if self.deaf else ():
            signal.signal(number, signal.SIG_IGN)
        context.report_progress(f"rank {self.rank} is at its weights")
        self.obey(config.get("load", {}))

    def handle(self, data, context):
        order = json.loads(context.get_request_header(0, "x-order") or "{}")
        if "steps" in order:
            return self.stream(data, order)
        if order.get("when") == "after":
            threading.Timer(0.3, os._exit, (3,)).start() if order["rank"] == self.rank else None
        else:
            self.obey(order)
        return [row.get("body", b"no body") for row in data]

    def stream(self, data, order):
        extra = order.get("extra", 0) if order.get("rank") == self.rank else 0
        for step in range(1, order["steps"] + extra + 1):
            while "gates" in order and not os.path.exists(os.path.join(order["gates"], str(step))):
                time.sleep(0.002)
            if step == order.get("at"):
                self.obey(order)
            yield [f"{step}\n" for _ in data]

    def obey(self, order):
        if "way" not in order:
            return
        if order.get("rank") in (None, self.rank):
            WAYS[order["way"]](self.rank)
        elif "others" in order:
            self.wait_as(order["others"])

    def wait_as(self, kind):
        """`wait` is a wait that is not counted, `all_reduce` and `send` are collectives that the SDK counts."""
        if kind in ("all_reduce", "send"):
            collectives.register("both", (0, 1))
            collectives.count(kind, "both")
        if kind != "answer":
            threading.Event().wait()

    def close(self):
        if self.deaf:
            threading.Event().wait()
