"""Methods as a servable announces them: `add` has named inputs, `same` takes and returns anything, `pick` may fail."""

from __future__ import annotations

import os
from typing import Any

from msx_core.methods import MethodInfo
from msx_sdk import Context, Handler, InvalidInput, method


class Methods(Handler):
    def offered_methods(self) -> tuple[MethodInfo, ...]:
        return (MethodInfo(name="add", inputs=("x1", "x2"), outputs=("y",)),)

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        return ["handled"] * len(data)

    @method
    def add(self, data: list[Any], context: Context) -> list[Any]:
        return [{"y": row["x1"] + row["x2"]} for row in data]

    @method
    def same(self, data: list[Any], context: Context) -> list[Any]:
        return [dict(row) for row in data]

    @method
    def pick(self, data: list[Any], context: Context) -> list[Any]:
        return [InvalidInput("Call pick Failed") if row["x"] == "bad" else {"x": row["x"]} for row in data]

    @method
    def exit(self, data: list[Any], context: Context) -> list[Any]:
        os._exit(3)
