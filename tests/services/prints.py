"""Prints as many megabytes as the body says, to stdout and to stderr."""

import sys

from msx_sdk import Handler

LINE = "x" * 99


class Prints(Handler):
    def inference(self, inputs):
        for _ in range(int(inputs[0]["body"]) * 10_000):
            print(LINE)
            print(LINE, file=sys.stderr)
        return ["printed" for _ in inputs]
