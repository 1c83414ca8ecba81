"""Raises on every request."""

from msx_sdk import Handler


class Raises(Handler):
    def inference(self, inputs):
        raise ValueError(f"no luck with {inputs[0]['body']!r}")
