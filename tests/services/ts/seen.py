"""Answers with the repr of its data; `?` gives an answer for each entry, `x2` twice that, `raise` an error."""


class Seen:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        if "raise" in data:
            raise ValueError("as asked")
        if all(isinstance(entry, dict) and "datatype" in entry for entry in data):
            return [entry["data"] for entry in data]
        return [repr(entry) for entry in data]
