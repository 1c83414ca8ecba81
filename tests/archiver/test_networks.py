"""Model files whose network the worker would not find, by their source alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_archiver.errors import PackError
from msx_archiver.networks import check_network

CELLS = "from mindspore import nn\nclass A(nn.Cell): ...\nclass B(A): ...\nclass C(nn.Cell): ...\n"
ONE = "from mindspore.nn import Cell\nclass Net(Cell): ...\nclass Options: ...\nclass More(object): ...\n"


def check(folder: Path, source: str, section: Any = None) -> None:
    (folder / "net.py").write_text(source)
    check_network(folder / "net.py", section, "--model-file")


@pytest.mark.parametrize(
    ("source", "section"),
    [
        (ONE, None),
        (ONE, {"args": {"x": 1}}),
        (CELLS, {"class": "B"}),
        (f"{CELLS}def create(): ...\n", None),
        (f"{CELLS}if True:\n    create = C\n", {}),
        (f"{CELLS}from nets import *\n", None),
        (f"{CELLS}from nets import create\n", None),
        (f"{CELLS}from nets import build as other\n", {"class": "other"}),
        ("import nets\nclass Net(nets.Base): ...\nclass Other(nets.Base): ...\n", None),
        ("import nets\nclass Net(nets.Base): ...\n", None),
        ("try:\n    from mindspore import nn\nfinally:\n    class Net(nn.Cell): ...\n", None),
    ],
)
def test_a_network_that_the_worker_finds(tmp_path: Path, source: str, section: Any) -> None:
    check(tmp_path, source, section)


@pytest.mark.parametrize(
    ("source", "section", "words"),
    [
        (
            CELLS,
            None,
            "net.py: expected a function create() or one nn.Cell class, found A, B, C: name one as `model: {",
        ),
        (f"{CELLS}class D:\n    def create(self): ...\n", None, "found A, B, C"),
        (f"{CELLS}def make():\n    create = C\n", None, "found A, B, C"),
        ("class Net: ...\n", None, "found none"),
        (CELLS, {"class": "D"}, "net.py has no class or function 'D', which `model: class:` names"),
        (CELLS, {"klass": "A"}, "--config-file: model: object contains unknown field `klass`"),
        (CELLS, {"class": 3}, "--config-file: model.class: expected `str | null`, got `int`"),
        (CELLS, [1], "--config-file: model: expected `object`, got `array`"),
        ("class Net(", None, "line 1"),
    ],
)
def test_one_that_it_would_not_find(tmp_path: Path, source: str, section: Any, words: str) -> None:
    with pytest.raises(PackError) as refused:
        check(tmp_path, source, section)
    assert words in str(refused.value)
