"""Rows that tell where they were computed; a call waits until the file `gate` of the yaml exists."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from msx_sdk import Context, Handler, InvalidInput, method
from msx_sdk.handler import Data


class Rows(Handler):
    calls = 0

    def handle(self, data: Data, context: Context) -> list[Any]:
        self.calls += 1
        while not Path(context.model_yaml_config["gate"]).exists():
            time.sleep(0.002)
        place = {"pid": os.getpid(), "call": self.calls, "of": len(data)}
        return [self._row(row["body"], place) for row in data]

    def _row(self, body: Any, place: dict[str, int]) -> Any:
        if not isinstance(body, dict):
            return place
        (row,) = body["instances"]
        return InvalidInput(f"row {row} is bad") if row == "bad" else {"predictions": [{"row": row, **place}]}

    @method("double")
    def twice(self, data: Data, context: Context) -> list[Any]:
        """Twice the number."""
        return [row["body"] * 2 for row in data]
