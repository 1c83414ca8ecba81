"""Prints and logs a client's text, and raises an error with it where it ends with "!"."""

import logging
import sys

from msx_sdk import Handler


class Says(Handler):
    def inference(self, inputs):
        for one in inputs:
            text = one["body"].decode()
            print(text)
            print(text, file=sys.stderr)
            logging.getLogger("says").warning("text %s", text)
            self.context.logger.info(text)
            if text.endswith("!"):
                raise ValueError(text)
        return ["said" for _ in inputs]
