"""A handler whose device is a clock, with Python before and behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from device_clock import DeviceClock  # type: ignore[import-not-found]  # it lies beside this file in the archive

from msx_sdk import Context, Handler


class Clocked(Handler):
    overlap = True

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.clock = DeviceClock(**context.model_yaml_config["clock"])

    def preprocess(self, data: list[dict[str, Any]]) -> list[bytes]:
        bodies = [bytes(row["body"]) for row in data]
        self.clock.compute()
        return bodies

    def inference(self, inputs: Sequence[bytes]) -> Sequence[bytes]:
        return self.clock.run(inputs)  # type: ignore[no-any-return]

    def postprocess(self, outputs: Sequence[bytes]) -> list[bytes]:
        self.clock.compute()
        return [*outputs]
