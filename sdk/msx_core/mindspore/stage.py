"""The cells of one stage, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import nn


class PipelineStage(nn.Cell):  # type: ignore[misc]
    """The outputs of a cell, a tensor or a tuple of tensors, are the arguments of the next cell."""

    def __init__(self, cells: Sequence[Any]) -> None:
        super().__init__()
        self.line = nn.CellList(list(cells))

    def construct(self, *values: Any) -> Any:
        for cell in self.line:
            result = cell(*values)
            values = result if isinstance(result, tuple) else (result,)
        return values
