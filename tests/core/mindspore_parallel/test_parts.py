"""Parts that need no ranks: places, stages, counts, rows, and parts of files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.mindspore import collectives
from msx_core.mindspore.balance import balance
from msx_core.mindspore.rows import split_rows, stack_rows
from msx_core.mindspore.weights import part
from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.mindspore import Parallel, Weights


def test_ranks_lie_stage_by_stage() -> None:
    parallel = Parallel(rank=5, stages=2, tp_size=4, world_group="all")
    assert (parallel.stage, parallel.tp_rank, parallel.world_size) == (1, 1, 8)
    assert (parallel.tp_ranks, parallel.pp_ranks) == ((4, 5, 6, 7), (1, 5))
    assert (parallel.tp_group, parallel.pp_group) == ("tp-1", "pp-1")
    assert (parallel.first_stage, parallel.last_stage) == (False, True)


def test_a_group_of_all_ranks_is_the_world() -> None:
    assert Parallel(stages=1, tp_size=2, world_group="all").tp_group == "all"
    assert Parallel(stages=2, tp_size=1, world_group="all").pp_group == "all"


@given(st.lists(st.integers(0, 100), min_size=1, max_size=9), st.integers(1, 4))
def test_the_heaviest_stage_is_as_light_as_can_be(weights: list[int], stages: int) -> None:
    if len(weights) < stages:
        with pytest.raises(ValueError, match="cannot be divided"):
            balance(weights, stages)
        return
    runs = balance(weights, stages)
    assert [n for run in runs for n in run] == list(range(len(weights)))
    assert len(runs) == stages
    assert all(runs)
    assert max(sum(weights[n] for n in run) for run in runs) == lightest(weights, stages)


def lightest(weights: list[int], stages: int) -> int:
    """By trying all cuts."""
    if stages == 1:
        return sum(weights)
    cuts = range(1, len(weights) - stages + 2)
    return min(max(sum(weights[:cut]), lightest(weights[cut:], stages - 1)) for cut in cuts)


def test_ranks_that_counted_the_same_agree() -> None:
    reports = {0: {"all_reduce[0,1]": 4, "send[0,2]": 1}, 1: {"all_reduce[0,1]": 4}, 2: {"send[0,2]": 1}}
    assert collectives.disagreement(reports) is None


@pytest.mark.parametrize("other", [{"all_reduce[0,1]": 3}, {}])
def test_a_rank_that_left_one_out_is_named(other: dict[str, int]) -> None:
    told = collectives.disagreement({0: {"all_reduce[0,1]": 4}, 1: other})
    assert told is not None
    assert told.startswith("the ranks do not agree on the number of all_reduce[0,1]: rank 0 4, rank 1")


def test_counts_name_the_ranks_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_members", {})
    monkeypatch.setattr(collectives, "_counts", type(collectives._counts)())
    collectives.register("tp-1", [2, 3])
    collectives.register("alone", [2])
    collectives.count("all_reduce", "tp-1", 2)
    collectives.count("all_reduce", "alone")
    assert collectives.counts() == {"all_reduce[2,3]": 2}
    with pytest.raises(ValueError, match=r"this rank does not know the group 'tp-2' \(known: tp-1, alone\)"):
        collectives.count("all_reduce", "tp-2")


def test_one_row_a_request() -> None:
    rows = stack_rows([{"body": [1, 2]}, {"data": [3, 4]}])
    assert rows.tolist() == [[1, 2], [3, 4]]
    assert [row.tolist() for row in split_rows(rows, 2)] == [[1, 2], [3, 4]]
    assert [row[1].tolist() for row in split_rows((rows, rows), 2)] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("body", ["text", None, [], {"a": 1}, bytearray(b"1"), [[1], [1, 2]]])
def test_what_is_not_a_row(body: Any) -> None:
    with pytest.raises(InvalidInput, match="request 1: expected a JSON array of numbers"):
        stack_rows([{"body": [1]}, {"body": body}])


def test_rows_unlike_each_other() -> None:
    with pytest.raises(InvalidInput, match=r"request 1: shape \[2\], but request 0 has \[1\]"):
        stack_rows([{"body": [1]}, {"body": [1, 2]}])


@given(st.integers(0, 50), st.integers(1, 8))
def test_parts_cover_an_axis_once(size: int, parts: int) -> None:
    covered = [n for index in range(parts) for n in range(size)[part(size, parts, index)]]
    assert covered == list(range(size))


def test_a_model_in_several_files(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"a": np.arange(6).reshape(2, 3)}, tmp_path / "1.safetensors")
    save_file({"b": np.ones(2)}, tmp_path / "2.safetensors")
    index = {"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with Weights(tmp_path) as weights:
        assert weights.shape("a") == (2, 3)
        assert weights.read("a", slice(1, 2), slice(1, 3)).tolist() == [[4, 5]]
        assert weights.read("b").tolist() == [1, 1]
        assert "c" not in weights
        with pytest.raises(HandlerLoadError, match=r"model.safetensors.index.json has no tensor 'c'"):
            weights.read("c")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.safetensors.index.json", "[]", "is not an index of safetensors files"),
        ("model.safetensors", "hello", "model.safetensors is not a safetensors file"),
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1", "it is a pointer of Git LFS, not the file"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, name: str, content: str, said: str) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / name).write_text(content)
    with pytest.raises(HandlerLoadError, match=said):
        Weights(tmp_path)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"neither .*index.json nor .*model.safetensors exists"):
        Weights(tmp_path)
