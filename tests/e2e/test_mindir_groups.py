"""The distributed MatMul of MindSpore Serving's tutorial: one MindIR a rank, or a checkpoint of parallel layers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.matmul import EXAMPLE, ONES, START, assert_product, config, pack_mindirs
from tests.e2e.server import new_store, run_server

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.collectives]


def pack_checkpoint(folder: Path, ranks: int) -> None:
    """No handler: the network asks for its place by the parameter `parallel`."""
    from safetensors.numpy import save_file

    weights = folder / "matmul.safetensors"
    save_file({"matmul.weight": np.full((96, 16), 0.5, np.float32)}, weights)
    options = PackOptions(
        model_name="checkpoint",
        handler="checkpoint",
        model_file=str(EXAMPLE / "net.py"),
        serialized_file=str(weights),
        config_file=config(folder, ranks),
        export_path=new_store(folder),
    )
    pack(options)


def test_two_ranks(tmp_path: Path) -> None:
    """Many clients at once; a request that is wrong is refused on all ranks alike, and the group lives on."""
    pack_mindirs(tmp_path, 2)
    pack_checkpoint(tmp_path, 2)
    with run_server(tmp_path, "--models", "matmul.mar", "checkpoint.mar", ready=False) as server:
        server.wait_ready(START)
        for model in ("matmul", "checkpoint"):
            with ThreadPoolExecutor(4) as clients:
                list(clients.map(lambda _: assert_product(server, model), range(8)))  # noqa: B023
            assert server.predict(model, [["x"]]).status_code == 400
            assert_product(server, model)
        tensor = {"name": "x", "shape": [128, 96], "datatype": "FP32", "data": ONES}
        reply = server.inference.post("/v2/models/matmul/infer", json={"inputs": [tensor]})
        assert set(reply.json()["outputs"][0]["data"]) == {-48.0}
        assert [server.describe(model)["workers"][0]["generation"] for model in ("matmul", "checkpoint")] == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 8])
def test_more_ranks(tmp_path: Path, ranks: int) -> None:
    pack_mindirs(tmp_path, ranks)
    with run_server(tmp_path, "--models", "matmul.mar", ready=False) as server:
        server.wait_ready(START)
        for _ in range(3):
            assert_product(server, "matmul")
        [worker] = server.describe("matmul")["workers"]
        assert (len(worker["ranks"]), worker["generation"]) == (ranks, 1)
