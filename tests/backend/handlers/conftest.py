"""Tiny networks, exported once per session."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.testing import LocalModel

np = pytest.importorskip("numpy")

NET = '''
import mindspore as ms
from mindspore import Tensor, nn


class Affine(nn.Cell):
    """x [n, 3] -> 2 x + bias, and the sum of every row"""

    def __init__(self, bias: float = 1.0) -> None:
        super().__init__()
        self.bias = ms.Parameter(Tensor([bias, 0.0, 0.0], ms.float32), name="bias")

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2 + self.bias, x.sum(-1)


class Single(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * 2


class Pair(nn.Cell):
    def construct(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


class Mean(nn.Cell):
    """Its output is not one row for each row."""

    def construct(self, x: Tensor) -> Tensor:
        return x.mean()
'''

Serve = Callable[..., LocalModel]


@pytest.fixture(scope="session")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `net.py` and the MindIR files made from it."""
    ms = pytest.importorskip("mindspore")
    folder = tmp_path_factory.mktemp("nets")
    (folder / "net.py").write_text(NET)
    space: dict[str, Any] = _import(folder / "net.py")
    rows, four = ms.Tensor(shape=[None, 3], dtype=ms.float32), ms.Tensor(np.zeros((4, 3), np.float32))
    for name, net, inputs in (
        ("affine", space["Affine"](), [rows]),
        ("single", space["Single"](), [rows]),
        ("whole", space["Single"](), [ms.Tensor(shape=[None, 3], dtype=ms.int32)]),
        ("fixed", space["Single"](), [four]),
        ("pair", space["Pair"](), [rows, rows]),
        ("mean", space["Mean"](), [rows]),
    ):
        net.set_train(False)
        net.set_inputs(*inputs)
        ms.export(net, *inputs, file_name=str(folder / name), file_format="MINDIR")
    ms.save_checkpoint(space["Affine"](5.0), str(folder / "affine.ckpt"))
    ms.save_checkpoint(space["Affine"](5.0), str(folder / "affine.safetensors"), format="safetensors")
    return folder


def _import(path: Path) -> dict[str, Any]:
    from msx_core.mindspore.cells import import_source

    return vars(import_source(path))


@pytest.fixture
def serve(nets: Path) -> Iterator[Serve]:
    """serve(handler, "x.mindir", config) is that model, loaded and warmed up."""
    with ExitStack() as opened:

        def start(handler: str, serialized: str, config: Any = None, folder: Path = nets, **files: str) -> LocalModel:
            manifest = {"model": {"serializedFile": serialized, **files}}
            return opened.enter_context(LocalModel(handler, folder, config=config or {}, manifest=manifest))

        yield start


@pytest.fixture(scope="module")
def shared(nets: Path) -> Iterator[Serve]:
    """The same for tests that change no model and no file of one: each is loaded once, which takes half a second."""
    with ExitStack() as opened:

        @cache
        def load(handler: str, folder: Path, manifest: str, config: str) -> LocalModel:
            model = LocalModel(handler, folder, config=json.loads(config), manifest=json.loads(manifest))
            return opened.enter_context(model)

        def start(handler: str, serialized: str, config: Any = None, folder: Path = nets, **files: str) -> LocalModel:
            manifest = {"model": {"serializedFile": serialized, **files}}
            return load(handler, folder, json.dumps(manifest), json.dumps(config or {}))

        yield start


@pytest.fixture(autouse=True)
def _mindspore_manners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """MindSpore writes into the current folder, uses what Python has deprecated, and keeps its mode."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"mindspore\.")
        yield
    if (ms := sys.modules.get("mindspore")) is not None:  # imported by those tests that need it
        ms.set_context(mode=ms.PYNATIVE_MODE)
