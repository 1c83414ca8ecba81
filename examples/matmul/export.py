"""Writes one MindIR a rank, model/device0/matmul.mindir and so on: python export.py RANKS"""

import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Part(nn.Cell):  # type: ignore[misc]
    """y = -(x · w), of which this rank multiplies some rows of w; the products are added up over the ranks."""

    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__()
        rows = 96 // ranks
        self.first, self.last = rank * rows, (rank + 1) * rows
        self.weight = Parameter(Tensor(np.full((rows, 16), 0.5, np.float32)))
        self.reduce = ops.AllReduce()  # in the group of all ranks

    def construct(self, x: Any) -> Any:
        return ops.neg(self.reduce(ops.matmul(x[:, self.first : self.last], self.weight)))


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    for rank in range(ranks):
        folder = Path("model") / f"device{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        x = Tensor(np.ones((128, 96), np.float32))
        ms.export(Part(rank, ranks), x, file_name=str(folder / "matmul"), file_format="MINDIR")
        print(folder / "matmul.mindir")
