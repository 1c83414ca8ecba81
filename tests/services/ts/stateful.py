"""A stateful handler in TorchServe's style: the sum of the numbers of each sequence so far."""

from abc import ABC

from ts.torch_handler.base_handler import BaseHandler


class SumOfSequence(BaseHandler, ABC):
    def initialize(self, ctx):
        self.context = ctx
        self.limit = ctx.model_yaml_config.get("handler", {}).get("limit", 1000)
        self.initialized = True

    def preprocess(self, data):
        return [bytes(row.get("data") or row.get("body")).decode() for row in data]

    def inference(self, data, *args, **kwargs):
        return [self.add(idx, text) for idx, text in enumerate(data)]

    def postprocess(self, data):
        return data

    def add(self, idx, text):
        ctx = self.context
        if not text.isdigit():
            ctx.set_response_status(400, "Not a number", idx)
            return f"{text} is not a number"
        sequence = ctx.get_sequence_id(idx)
        if ctx.get_request_header(idx, ctx.header_key_sequence_start):
            ctx.cache.pop(sequence, None)
        total = ctx.cache[sequence] = min(ctx.cache.get(sequence, 0) + int(text), self.limit)
        ctx.set_response_header(idx, ctx.header_key_sequence_id, sequence)
        if ctx.get_request_header(idx, ctx.header_key_sequence_end):
            del ctx.cache[sequence]
        return str(total)
