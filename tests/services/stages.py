"""Stages of a model: each writes its name around its input. `NAME!COMMAND` in the input tells the stage of this name
what to do, `NAME!COMMAND=VALUE` with a value."""

import os
import re
import time
from pathlib import Path

from msx_sdk import Handler, PredictionError

_TOLD = re.compile(r"(\w+)!(\w+)(?:=([^\s();!]+))?")


class Stage(Handler):
    name = ""

    def handle(self, data, context):
        return [self.answer(row, context, index) for index, row in enumerate(data)]

    def answer(self, row, context, index):
        text = ";".join(f"{name}={_text(row[name])}" if len(row) > 1 else _text(row[name]) for name in sorted(row))
        for name, command, value in _TOLD.findall(text):
            if name == self.name:
                told = getattr(self, command)(value, context, index)
                if told is not None:
                    return told
        return f"{self.name}({text})"

    def refuse(self, value, context, index):
        raise PredictionError(int(value), "a sentence of the handler")

    def raises(self, value, context, index):
        raise RuntimeError("a bug of the handler")

    def status(self, value, context, index):
        context.set_response_status(int(value), "As told", idx=index)
        return "a body of the handler"

    def pid(self, value, context, index):
        return f"{self.name}:{os.getpid()}"

    def env(self, value, context, index):
        return f"{self.name}:{os.environ.get(value)}"

    def model(self, value, context, index):
        return f"{self.name}:{context.model_name}:{sorted(context.model_yaml_config)}"

    def array(self, value, context, index):
        import numpy as np

        return np.full((1, int(value)), 0.5, np.float32)

    def an_object(self, value, context, index):
        return object()

    def wait(self, value, context, index):
        """Until the file is there, or the client has left, which the file `VALUE.left` then says."""
        Path(value + ".begun").touch()
        while not Path(value).exists():
            if context.cancelled(index):
                Path(value + ".left").touch()
                return "left"
            time.sleep(0.005)
        return None


def _text(value):
    if hasattr(value, "dtype"):
        return f"{value.dtype}{value.shape}"
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)


class One(Stage):
    name = "one"


class Two(Stage):
    name = "two"


class Three(Stage):
    name = "three"


class Join(Stage):
    name = "join"


class Streams(Handler):
    """Answers each character of its input in a piece of its own."""

    def handle(self, data, context):
        (row,) = data
        for character in row["body"]:
            yield [character]
