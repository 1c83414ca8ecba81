"""Handlers of divided models on real ranks, compared with the undivided model."""

from pathlib import Path
from typing import Any

import pytest

from msx_sdk.mindspore import collectives
from tests.core.mindspore_parallel.ranks import Results, config, needs_mindspore, run_ranks
from tests.core.mindspore_parallel.shapes import tensors
from tests.core.test_group_config import group

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]
PLACES = ["embed", "layers.0", "layers.1", "layers.2", "picky", "head"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked archive with the weights of `nets`."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file(tensors(), str(tmp_path / "model.safetensors"))
    return tmp_path


def test_tp2_is_one_rank_in_a_graph_and_without_and_idling_is_not_a_failure(folder: Path) -> None:
    graph = {"mindspore": {"mode": "graph"}}
    ranks = run_ranks("tensor_parallel", folder, config(1, 2, idle=6, **graph), MS_CPU_COMM_OP_TIMEOUT="5")
    assert_right(ranks, answering=[0, 1])
    assert [rank["failures"]["0"] for rank in ranks] == [[400, "token ids are 0 or more"]] * 2
    assert [rank["shard"] for rank in ranks] == [[16, 16]] * 2
    # An embedding, three row-parallel layers, and a head that gathers; two calls of a graph, one without.
    assert ranks[0]["of_graph"] == {"all_reduce[0,1]": 8, "all_gather[0,1]": 2}
    assert ranks[0]["counts"] == {"all_reduce[0,1]": 12, "all_gather[0,1]": 3}


@pytest.mark.long
def test_pp2_is_one_rank_whatever_fails(folder: Path) -> None:
    """As pptp4, which has groups for each stage beside."""
    ranks = run_ranks("pipeline", folder, config(2, 1))
    assert_right(ranks, answering=[0])
    assert_every_failure_ends_all_ranks(ranks)
    assert ranks[0]["places"] + ranks[1]["places"] == PLACES


def test_pptp4_is_one_rank_whatever_fails(folder: Path) -> None:
    ranks = run_ranks("pipeline", folder, config(2, 2, pipeline={"chunks": 3}))
    assert_right(ranks, answering=[0, 1])
    assert_every_failure_ends_all_ranks(ranks)
    assert_collectives_work(ranks)
    first, same, last, too = (rank["places"] for rank in ranks)
    assert (first, last) == (same, too)
    assert first + last == PLACES
    assert '"stages": 2' in ranks[0]["described"]["0"][0]


def test_pp3_streams_and_survives_clients_that_leave(folder: Path) -> None:
    ranks = run_ranks("streaming", folder, config(3, 1))
    assert_right(ranks, answering=[])
    whole, again = ranks[0]["chunks"]
    assert whole == again
    assert [len(chunks) for chunks in whole.values()] == [4, 4]  # three tokens, and the empty end
    assert ranks[0]["abandoned"] == [chunks[0] for chunks in whole.values()]
    assert [rank["failures"] for rank in ranks] == [{"0": [400, "a stream that fails"]}] * 3


def test_a_mindir_a_rank_in_groups_of_a_file(tmp_path: Path) -> None:
    """The last rank answers; one that has no inputs gets none. A call that fails on all ranks is a failed call."""
    for rank in range(2):
        (tmp_path / f"groups{rank}.pb").write_bytes(group("2-7177", 0, 1) + group("1-1", rank))
    first, last = run_ranks("rank_models", tmp_path, config(1, 2))
    product, taken = [[[-4.0] * 2] * 4], [[16.0] * 4]
    assert first["answers"] == [product, taken, [[[-8.0] * 2] * 4], [[24.0] * 4]]
    assert first["shapes"] == [[[4, 2]], [[4]]]
    assert first["error"].startswith("Error happened on get result of rank 0: ")
    assert collectives.disagreement({0: first["counts"], 1: last["counts"]}) is None


def assert_right(ranks: Results, answering: list[int]) -> None:
    for rank in answering:
        assert all(error is not None and error <= 1e-5 for error in ranks[rank]["errors"]), ranks[rank]["errors"]
    assert collectives.disagreement({rank: result["counts"] for rank, result in enumerate(ranks)}) is None
    assert all(result["counts"] for result in ranks)


def assert_every_failure_ends_all_ranks(ranks: Results) -> None:
    wanted: dict[str, tuple[int, str]] = {
        "by preprocess": (400, "token ids are 0 or more"),
        "by postprocess": (400, "not this one"),
        "by the last stage": (503, "a prompt of this length is too much for me"),
        "unlike inputs": (500, "inputs of a pipeline need the same first axis"),
    }
    for number, rank in enumerate(ranks):
        for how, (status, text) in wanted.items():
            failures: dict[str, Any] = rank["failures"][how]
            assert failures, f"rank {number} did not fail: {how}"
            assert all(failure[0] == status and text in failure[1] for failure in failures.values()), failures


def assert_collectives_work(ranks: Results) -> None:
    """Check the collectives of 2 × 2 ranks, each with its number."""
    for rank, result in enumerate(ranks):
        tp, pp = rank // 2 * 2, rank % 2
        for kind, (first, last) in {"tp": (tp, tp + 1), "pp": (pp, pp + 2)}.items():
            total = [first + last] * 2
            assert result[kind] == {
                "sum": total,
                "sum of integers": total,
                "max": [last] * 2,
                "gathered": [first, first, last, last],
                "of the last": [last] * 2,
                "unchanged": [rank] * 2,
            }
        assert result["sent"] == ([] if rank < 2 else [[rank - 2] * 2, [True, False], []])
