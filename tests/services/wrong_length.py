"""Returns one entry too many."""

from msx_sdk import Handler


class WrongLength(Handler):
    def postprocess(self, outputs):
        return [*("ok" for _ in outputs), "one too many"]
