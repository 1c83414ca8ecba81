"""Returns what has no JSON form."""

from msx_sdk import Handler


class Unserializable(Handler):
    def postprocess(self, outputs):
        return [object() for _ in outputs]
