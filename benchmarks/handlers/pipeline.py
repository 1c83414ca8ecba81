"""Three stages: an array is made, passed on, and summed up. A request says how many bytes the array has."""

from __future__ import annotations

from typing import Any

import numpy as np

from msx_sdk import Context, Handler


class Make(Handler):
    def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        return [self._array(int(bytes(row["body"])), idx, context) for idx, row in enumerate(data)]

    def _array(self, size: int, idx: int, context: Context) -> Any:
        array = context.output(size, np.uint8, idx)
        array.fill(7)
        return array


class Pass(Handler):
    def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        return [row["body"] for row in data]


class Sum(Handler):
    def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        return [str(int(row["body"].view(np.uint64).sum(dtype=np.uint64))) for row in data]
