"""A rank holds its shard of the weights and no more, also while it loads."""

import json
import struct
from pathlib import Path

import pytest

from tests.core.mindspore_parallel.ranks import config, needs_mindspore, run_ranks

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]
MB = 2**20
SIZE = 200 * MB
LAYERS = 4
SIDE = 3_620
"""LAYERS matrices of SIDE × SIDE float32 are SIZE."""
SLACK = 60 * MB


def test_a_rank_of_two_never_holds_more_than_half(tmp_path: Path) -> None:
    """Though the yaml gives the number of threads, which MindSpore lets a process set once."""
    write_weights(tmp_path / "model.safetensors")
    for rank in run_ranks("load_and_measure", tmp_path, config(1, 2, mindspore={"threads": 1})):
        assert rank["parameters"] == pytest.approx(SIZE / 2, rel=0.01)
        assert rank["peak"] <= SIZE / 2 + SLACK


def write_weights(path: Path) -> None:
    """Sparse: the file takes no disk, and reading it gives zeros."""
    size = SIDE * SIDE * 4
    header = {
        f"{n}.weight": {"dtype": "F32", "shape": [SIDE, SIDE], "data_offsets": [n * size, (n + 1) * size]}
        for n in range(LAYERS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + LAYERS * size)
