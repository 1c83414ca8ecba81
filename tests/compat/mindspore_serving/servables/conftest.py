"""Small MindIR files, exported once per session."""

from pathlib import Path

import pytest

from tests.mindspore_scripts import run_mindspore

pytest.importorskip("numpy")

KEY = b"0123456789ABCDEF"

SOURCE = '''
import numpy as np, mindspore as ms
from mindspore import Tensor, nn, ops


class Add(nn.Cell):
    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Scale(nn.Cell):
    """Each row of x by the one factor, and its sum."""

    def construct(self, x: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        return x * factor, ops.reduce_sum(x * factor, -1)


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


ms.export(Add(), ones(2, 3), ones(2, 3), file_name="add", file_format="MINDIR")
ms.export(Add(), ones(2, 3), ones(2, 3), file_name="again", file_format="MINDIR")
ms.export(Add(), ones(3, 3), ones(3, 3), file_name="other", file_format="MINDIR")
open_ = Tensor(shape=[None, 3], dtype=ms.float32)
ms.export(Add(), open_, open_, file_name="open", file_format="MINDIR")
ms.export(Scale(), ones(4, 3), ones(1), file_name="scale", file_format="MINDIR")
ms.export(Add(), ones(2, 3), ones(2, 3), file_name="secret", file_format="MINDIR", enc_key=KEY, enc_mode="AES-GCM")
'''


@pytest.fixture(scope="session")
def mindirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`add` and `again` [2, 3], `other` [3, 3] and `open` [n, 3] add two inputs, `secret` is `add` encrypted with KEY;
    `scale` has 4 rows and a factor."""
    pytest.importorskip("mindspore")
    folder = tmp_path_factory.mktemp("mindirs")
    (folder / "export.py").write_text(f"KEY = {KEY!r}\n{SOURCE}")
    run_mindspore(folder / "export.py", folder=folder)
    return folder
