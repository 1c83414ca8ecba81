"""A matrix product whose weight is divided over the ranks of a group."""

from typing import Any

from msx_sdk import InvalidInput
from msx_sdk.mindspore import Parallel, TensorParallelHandler

ROW = 96


class MatMulHandler(TensorParallelHandler):
    example = {"body": [[1.0] * ROW] * 128}

    def build(self, parallel: Parallel) -> Any:
        from net import Net  # imports MindSpore, which wants to be set up first

        return Net(parallel)

    def preprocess(self, data: list[dict[str, Any]]) -> Any:
        x = super().preprocess(data)  # [requests, rows, 96], from the JSON of each request
        if x.ndim != 3 or x.shape[-1] != ROW:
            raise InvalidInput(f"x: expected a matrix of rows of {ROW} numbers, got the shape {list(x.shape[1:])}")
        return x
