"""A handler for continuous batching as TorchServe's documentation shows one: counts down the tokens of each request.

An order is `{"name": ..., "tokens": n, "gate": folder}`. Each call is a line of the file `calls-<rank>` of the gate:
which names it had, and which came with inputs; then rank 0 waits for the file `go-<call>`, unless there is `go`.
`fail: all` raises; `fail: one` answers by an exception; `plain` ends by a criterion that says None;
`stop: name` ends another request of the same sequence; `end` is the response header that ends the sequence.
Ranks behind the first stage of a pipeline have no inputs: they read the order from the header `x-order`.
"""

import json
import time
from pathlib import Path


class Countdown:
    def initialize(self, context):
        self.context = context
        context.cache = {}
        self.calls = {}

    def handle(self, data, context):
        if context.get_request_header(0, "describe") == "True":
            return [{"requests": len(data), "cached": [state["name"] for state in context.cache.values()]}]
        for idx, (request_id, row) in enumerate(zip(context.request_ids.values(), data, strict=True)):
            if request_id not in context.cache:
                header = context.get_request_header(idx, "x-order")
                context.cache[request_id] = dict(row["body"]) if row else json.loads(header)
            self.say(idx, context.cache[request_id])
        states = [context.cache[request_id] for request_id in context.request_ids.values()]
        self.record(states, data)
        return self.step(states)

    def step(self, states):
        if any(state.get("fail") == "all" for state in states):
            raise ValueError("the whole call is bad")
        for state in states:
            state["tokens"] -= 1
            for other in self.context.cache.values():
                if other["name"] == state.get("stop"):
                    other["tokens"] = 0
        ids = self.context.request_ids.values()
        self.context.stopping_criteria = [self.criterion(id, state) for id, state in zip(ids, states, strict=True)]
        return [self.result(state) for state in states]

    def result(self, state):
        if state.get("fail") == "one":
            return ValueError("this one is bad")
        return f"{state['name']}{max(state['tokens'], 0)} "

    def criterion(self, request_id, state):
        def stop(result):
            assert result.startswith(state["name"])
            if state["tokens"] > 0:
                return False
            del self.context.cache[request_id]
            return None if state.get("plain") else True

        return stop

    def say(self, idx, state):
        sequence = self.context.get_sequence_id(idx)
        if sequence:
            self.context.set_response_header(idx, self.context.header_key_sequence_id, sequence)
        if state.get("end"):
            self.context.set_response_header(idx, self.context.header_key_sequence_end, sequence)

    def record(self, states, data):
        gate = Path(states[0]["gate"])
        call = self.calls[gate] = self.calls.get(gate, 0) + 1
        fresh = [state["name"] for state, row in zip(states, data, strict=True) if row]
        cached = sorted(state["name"] for state in self.context.cache.values())
        line = {"call": call, "names": [state["name"] for state in states], "fresh": fresh, "cached": cached}
        with (gate / f"calls-{self.context.rank}").open("a") as file:
            file.write(json.dumps(line) + "\n")
        while self.context.rank == 0 and not ((gate / "go").exists() or (gate / f"go-{call}").exists()):
            time.sleep(0.005)
