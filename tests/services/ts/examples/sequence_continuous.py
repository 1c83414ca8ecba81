"""As TorchServe's example of sequences in continuous batches: criteria that stop, kept in the context's cache."""

from ts.torch_handler.base_handler import BaseHandler


class Criterion:
    def __init__(self, context, sequence_id, request_id):
        self.context, self.sequence_id, self.request_id = context, sequence_id, request_id
        self.left = 2

    def __call__(self, result):
        cache = self.context.cache
        if not cache[self.request_id]["stream"]:
            del cache[self.request_id]
            return None
        self.left -= 1
        return self.left <= 0


class ContinuousSums(BaseHandler):
    def initialize(self, ctx):
        ctx.cache = {}
        self.initialized = True

    def preprocess(self, data):
        results, cache = [], self.context.cache
        for idx, row in enumerate(data):
            sequence_id, request_id = self.context.get_sequence_id(idx), self.context.get_request_id(idx)
            self.context.set_response_header(idx, self.context.header_key_sequence_id, sequence_id)
            if request_id not in cache:
                number = int((row.get("data") or row.get("body")).decode("utf-8"))
                started = self.context.get_request_header(idx, self.context.header_key_sequence_start)
                cache[sequence_id] = number + (0 if started else cache[sequence_id])
                cache[request_id] = {
                    "stop": Criterion(self.context, sequence_id, request_id),
                    "stream": number % 2 == 1,
                }
            results.append(cache[sequence_id])
        return results

    def inference(self, data, *args, **kwargs):
        return data

    def postprocess(self, data):
        ids = self.context.request_ids.values()
        self.context.stopping_criteria = [self.context.cache[request_id]["stop"] for request_id in ids]
        return data
