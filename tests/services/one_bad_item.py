"""Refuses the requests whose body is `bad` and answers their neighbours."""

from msx_sdk import Handler, InvalidInput


class OneBadItem(Handler):
    def inference(self, inputs):
        return [InvalidInput("body: expected anything but 'bad'") if is_bad(row) else row["body"] for row in inputs]


def is_bad(row):
    return row["body"] in (b"bad", "bad")
