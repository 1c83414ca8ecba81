"""Writes down on every rank what it sees: one JSON line for each event, in `rank-<n>` of the folder that config names.

What to do stands in the header `x-order`, which every rank sees: `{"steps": 3}` makes a stream, each step of which
waits for a file of its number in the folder `gates` (if there is one) and then for `pause` seconds;
`{"bad": true}` fails the whole batch.
"""

import json
import os
import time

VARIABLES = [
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("RANK_ID", "RANK_SIZE", "DEVICE_ID", "ASCEND_RT_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
]


class Record:
    def initialize(self, context):
        self.example = {"body": b"warm"}
        self.rank = context.rank
        self.config = context.model_yaml_config
        told = {"world": context.world_size, "local": context.local_rank, "device": context.device_id}
        self.write(env={name: os.environ[name] for name in VARIABLES if name in os.environ}, **told)
        self.wait_for("hold")

    def handle(self, data, context):
        self.wait_for("hold_calls")
        ids = [context.get_request_id(idx) for idx in range(len(data))]
        self.write(call=ids, cancelled=cancelled(context, data), fields=[sizes(row) for row in data])
        orders = [json.loads(context.get_request_header(idx, "x-order") or "{}") for idx in range(len(data))]
        if any(order.get("bad") for order in orders):
            raise ValueError("a bad request")
        if any("steps" in order for order in orders):
            return self.stream(orders, context)
        return [f"{id} of {self.rank}" for id in ids]

    def stream(self, orders, context):
        try:
            for step in range(1, max(order.get("steps", 0) for order in orders) + 1):
                while not all(is_open(order, step) for order in orders):
                    time.sleep(0.002)
                time.sleep(max(order.get("pause", 0) for order in orders))
                self.write(step=step, cancelled=cancelled(context, orders))
                yield [f"{step} of {self.rank}\n" for _ in orders]
        finally:
            self.write(closed=cancelled(context, orders))

    def wait_for(self, what):
        while what in self.config and not os.path.exists(f"{self.config[what]}-{self.rank}"):
            time.sleep(0.005)

    def close(self):
        self.write(end=True)

    def write(self, **line):
        with open(os.path.join(self.config["folder"], f"rank-{self.rank}"), "a") as file:
            file.write(json.dumps(line) + "\n")


def is_open(order, step):
    return "gates" not in order or os.path.exists(os.path.join(order["gates"], str(step)))


def cancelled(context, rows):
    return [idx for idx in range(len(rows)) if context.cancelled(idx)]


def sizes(row):
    return {name: len(value) for name, value in row.items()}
