"""Writes the servable's model, add/1/add.mindir: the sum of two tensors [8, 4]."""

from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn


class Add(nn.Cell):
    def construct(self, x1, x2):
        return x1 + x2


if __name__ == "__main__":
    rows = ms.Tensor(np.ones((8, 4), np.float32))
    folder = Path(__file__).parent / "add" / "1"
    folder.mkdir(exist_ok=True)
    ms.export(Add(), rows, rows, file_name=str(folder / "add"), file_format="MINDIR")
