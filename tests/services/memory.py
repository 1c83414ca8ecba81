"""Holds as many megabytes as the body says; `oom` says that there are none left. Answers with the bytes held."""

from msx_sdk import Handler


class Memory(Handler):
    def initialize(self, context):
        super().initialize(context)
        self.held = []

    def inference(self, inputs):
        for row in inputs:
            if row["body"] in (b"oom", "oom"):
                raise MemoryError("the device has no memory left")
            self.held.append(bytearray(int(row["body"]) << 20))
        return [sum(map(len, self.held)) for _ in inputs]
