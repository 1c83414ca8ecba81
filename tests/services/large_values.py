"""Stages that pass large values on. A request is `SIZE` or `SIZE FILE`: with a file, the stage that it names
(`FILE.make`, `FILE.turn`, `FILE.sum`) says that it has begun, and waits until `FILE` is there."""

import os
import time
import zlib
from pathlib import Path

from msx_sdk import Handler


class Large(Handler):
    def handle(self, data, context):
        return [self.answer(row) for row in data]

    def wait(self, told):
        name, _, file = told.partition(":")
        if name == type(self).__name__.lower():
            says = Path(f"{file}.says")
            says.write_text(str(os.getpid()))
            says.rename(f"{file}.begun")  # a reader never finds it empty
            while not Path(file).exists():
                time.sleep(0.005)


class Make(Large):
    def answer(self, row):
        size, _, told = bytes(row["body"]).decode().partition(" ")
        self.wait(told)
        return {"told": told, "data": bytes([7]) * int(size)}


class Turn(Large):
    """Every byte by one further."""

    def answer(self, row):
        value = row["body"]
        self.wait(value["told"])
        return {"told": value["told"], "data": value["data"].translate(bytes([*range(1, 256), 0]))}


class Sum(Large):
    def answer(self, row):
        values = [row[name] for name in sorted(row)]
        self.wait(values[0]["told"])
        return " ".join(f"{len(one['data'])}:{zlib.crc32(one['data'])}" for one in values)


class Arrays(Handler):
    """The same with arrays, where the handler writes into the answer's memory."""

    def handle(self, data, context):
        import numpy as np

        return [self._made(row["body"], context, index, np) for index, row in enumerate(data)]

    def _made(self, body, context, index, np):
        array = context.output(int(bytes(body).decode()), np.uint8, index)
        array.fill(7)
        return array


class Turned(Handler):
    def handle(self, data, context):
        import numpy as np

        made = [context.output(row["body"].shape, np.uint8, index) for index, row in enumerate(data)]
        for row, array in zip(data, made, strict=True):
            np.add(row["body"], 1, out=array)
        return made


class Kept(Handler):
    """Keeps every input, against the advice of the documentation."""

    def initialize(self, context):
        self.kept = []

    def handle(self, data, context):
        self.kept += [row["body"] for row in data]
        return [f"{row['body'].flags.writeable} {int(row['body'].sum())}" for row in data]
