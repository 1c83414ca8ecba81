"""Sends one chunk, then fails."""

from msx_sdk import Handler


class StreamErrorMidway(Handler):
    def handle(self, data, context):
        yield ["first\n" for _ in data]
        raise RuntimeError("the second chunk is not to be had")
