"""Raises for the whole batch when one body is `bad`, as a handler does that knows nothing of its neighbours."""

from msx_sdk import Handler, InvalidInput


class RaiseOnBad(Handler):
    def preprocess(self, data):
        if any(row["body"] in (b"bad", "bad") for row in data):
            raise InvalidInput("body: expected anything but 'bad'")
        return [row["body"] for row in data]
