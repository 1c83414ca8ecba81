"""Answers with what it was given: fields with their types, headers, request id, length of the batch."""

from msx_sdk import Handler


class Report(Handler):
    def preprocess(self, data):
        return [self.report(idx, row) for idx, row in enumerate(data)]

    def report(self, idx, row):
        return {
            "fields": {name: [type(value).__name__, plain(value)] for name, value in row.items()},
            "headers": dict(self.context.get_all_request_header(idx)),
            "id": self.context.get_request_id(idx),
            "batch": len(self.context.request_ids),
            "version": self.context.model_version,
        }

    def explain(self, inputs):
        return [{"explained": report} for report in inputs]

    def describe(self):
        return {"reports": True}


def plain(value):
    return bytes(value).decode("latin-1") if isinstance(value, bytearray) else value
