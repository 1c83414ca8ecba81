"""Which MindIR files of a servable have their rows compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.mindir import TensorSpec
from msx_core.servables import Model, ModelDeclaration
from msx_mindspore_serving.servables import networks
from msx_mindspore_serving.servables.networks import ModelFiles
from msx_sdk import HandlerLoadError
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import Network

np = pytest.importorskip("numpy")

SPECS = [TensorSpec("x", "float32", (-1, 2))]


def load(folder: Path, config: dict[str, Any], **declared: Any) -> list[int]:
    """The numbers of rows of the calls of a network whose rows depend on each other."""
    calls: list[int] = []

    def run(x: Any) -> Any:
        calls.append(len(x))
        return x * len(x)

    class Dependent(Network):
        def __call__(self, arrays: Any) -> Any:
            return [run(*arrays)]

    (folder / "1").mkdir()
    (folder / "1" / "net.mindir").touch()
    context = Context(ModelInfo("add", "1", folder, config=config))
    declaration = ModelDeclaration(key="net.mindir", files=("net.mindir",), format="mindir", **declared)
    with patch.object(networks, "load_mindir_file", lambda *args: Dependent(SPECS, SPECS, run)):
        ModelFiles(context, None)._load(Model(declaration))
    return calls


def test_rows_that_depend_on_each_other_are_refused_where_instances_are_joined(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"load error details: net\.mindir: x of a row depends on the rows"):
        load(tmp_path, {})


@pytest.mark.parametrize(
    ("config", "declared"),
    [({"batchCheck": False}, {}), ({"warmup": False}, {}), ({}, {"with_batch_dim": False})],
)
def test_no_rows_are_compared_elsewhere(tmp_path: Path, config: Any, declared: Any) -> None:
    assert load(tmp_path, config, **declared) == []
