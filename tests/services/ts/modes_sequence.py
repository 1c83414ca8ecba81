"""A stateful handler as TorchServe's documentation shows one: sums up the numbers of each sequence.

Orders: `{"add": n}`; with `gate` (a folder) the call is marked there as `begun-<name>` and waits for `go-<name>`;
`fail` raises, `close` is the value of the response header that ends sequences.
"""

import json
import os
import time
from pathlib import Path


class Sums:
    def initialize(self, context):
        self.context = context
        self.sums = {}

    def handle(self, data, context):
        orders = [order_of(row) for row in data]
        for order in orders:
            if "gate" in order:
                gate = Path(order["gate"])
                (gate / f"begun-{order['name']}").touch()
                while not (gate / f"go-{order['name']}").exists():
                    time.sleep(0.005)
        if any("fail" in order for order in orders):
            raise ValueError("one of the batch is bad")
        return [self.answer(idx, order) for idx, order in enumerate(orders)]

    def answer(self, idx, order):
        context = self.context
        sequence = context.get_sequence_id(idx)
        context.set_response_header(idx, context.header_key_sequence_id, sequence)
        if "close" in order:
            context.set_response_header(idx, context.header_key_sequence_end, order["close"])
        started = context.get_request_header(idx, context.header_key_sequence_start)
        if started:
            self.sums[sequence] = 0
        known = sequence in self.sums
        self.sums[sequence] = self.sums.get(sequence, 0) + order.get("add", 0)
        return {
            "sum": self.sums[sequence],
            "started": started,
            "known": known,
            "ended": context.get_request_header(idx, context.header_key_sequence_end),
            "batch": [context.get_sequence_id(i) for i in range(len(context.request_ids))],
            "pid": os.getpid(),
        }


def order_of(row):
    body = row.get("data") or row.get("body")
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
