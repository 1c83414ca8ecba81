"""Returns a dict where a list is due."""

from msx_sdk import Handler


class NotAList(Handler):
    def postprocess(self, outputs):
        return {"answer": 42}
