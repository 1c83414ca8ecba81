"""Answers with what it was given: fields with their types, headers, request id, length of the batch.

As a handler of TorchServe it has no base class.
"""


class Report:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        if context.get_request_header(0, "describe") == "True":
            return [{"reports": True}] * len(data)
        reports = [report(context, idx, row) for idx, row in enumerate(data)]
        explained = context.get_request_header(0, "explain") == "True"
        return [{"explained": one} for one in reports] if explained else reports


def report(context, idx, row):
    return {
        "fields": {name: [type(value).__name__, plain(value)] for name, value in row.items()},
        "headers": dict(context.get_all_request_header(idx)),
        "id": context.get_request_id(idx),
        "batch": len(context.request_ids),
        "version": context.model_version,
    }


def plain(value):
    return bytes(value).decode("latin-1") if isinstance(value, bytearray) else value
