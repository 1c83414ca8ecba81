"""A handler whose device is a clock, in a worker that notes when it reaches which step."""

from __future__ import annotations

import time
from typing import Any

from marks import Marks, mark  # type: ignore[import-not-found]  # it lies beside this file in the archive

from msx_backend.replies import ReplyWriter
from msx_protocol import FrameReader
from msx_sdk import Context, Handler

MARKS: Marks = {}


class Marked(Handler):
    overlap = True

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.seconds = context.model_yaml_config["call"] / 1000

    def preprocess(self, data: list[dict[str, Any]]) -> list[bytes]:
        return [bytes(row["body"]) for row in data]

    def inference(self, inputs: list[bytes]) -> list[bytes]:
        time.sleep(self.seconds)
        return inputs

    def postprocess(self, outputs: list[bytes]) -> list[bytes]:
        return outputs

    def describe(self) -> Any:
        return MARKS


mark(MARKS, FrameReader, "received", begin="read")
for step in ("preprocess", "inference", "postprocess"):
    mark(MARKS, Marked, step, begin=step, end=f"{step} done")
mark(MARKS, ReplyWriter, "_write", end="replied")
