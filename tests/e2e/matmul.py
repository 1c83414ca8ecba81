"""The distributed MatMul of MindSpore Serving's tutorial, examples/matmul, as models of a server."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import RunningServer, new_store
from tests.mindspore_scripts import run_mindspore

EXAMPLE = Path(__file__).parents[2] / "examples" / "matmul"
START = 300.0
"""Seconds until eight ranks on two cores are ready."""
ONES = [[1.0] * 96] * 128


def export(folder: Path, ranks: int) -> None:
    """Write `model/device0/matmul.mindir` and so on."""
    run_mindspore(EXAMPLE / "export.py", str(ranks), folder=folder)


def config(folder: Path, ranks: int, more: str = "") -> str:
    file = folder / "model-config.yaml"
    text = (EXAMPLE / "model-config-tp2.yaml").read_text().replace("nproc-per-node: 2", f"nproc-per-node: {ranks}")
    file.write_text(f"startupTimeout: {START:.0f}\nbatchSize: 2\n{text}{more}")
    return str(file)


def pack_mindirs(folder: Path, ranks: int, more: str = "") -> None:
    export(folder, ranks)
    options = PackOptions(
        model_name="matmul",
        handler="mindir",
        serialized_file=f"{folder}/model/device{{rank}}/matmul.mindir",
        config_file=config(folder, ranks, more),
        export_path=new_store(folder),
    )
    pack(options)


def assert_product(server: RunningServer, model: str) -> None:
    reply = server.predict(model, ONES)
    assert reply.status_code == 200, reply.text
    assert np.unique(reply.json()).tolist() == [-48.0]
    assert np.shape(reply.json()) == (128, 16)
