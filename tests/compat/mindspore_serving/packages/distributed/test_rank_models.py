"""Models of ranks that do not fit together are refused before a rank is started."""

from __future__ import annotations

import pytest

from msx_core.mindir import TensorSpec
from msx_mindspore_serving.packages.mindspore_serving.server.distributed import rank_models
from msx_mindspore_serving.packages.mindspore_serving.server.distributed.rank_models import RankGraph, check_models
from tests.core.test_mindir import DATA

X = TensorSpec("x", "float32", (128, 96))
Y = TensorSpec("output_0", "float32", (128, 16))
NAMED = TensorSpec("another", "float32", (128, 96))
SMALL = TensorSpec("x", "float32", (64, 96))
WHOLE, LATER = RankGraph([X], [Y]), RankGraph([], [Y])
STAGES = (
    "you can check if the actual stage size of the distributed model matches the stage size declared in "
    "servable_config.py, details:"
)
EXPECT = "Expect stage 0(other stages have empty inputs) or all stages have same inputs, detect rank"

REFUSED: list[tuple[list[list[RankGraph]], int, str]] = [
    (
        [[WHOLE], [RankGraph([SMALL], [Y])]],
        1,
        f"Rank 1 input infos not match rank 0, subgraph: 0, {STAGES} "
        "input 0 is float32[64, 96], expected float32[128, 96]",
    ),
    (
        [[WHOLE, WHOLE], [WHOLE, LATER]],
        1,
        f"Rank 1 input infos not match rank 0, subgraph: 1, {STAGES} inputs count 0 not equal to 1",
    ),
    ([[WHOLE], [RankGraph([X], [])]], 1, "Rank 1 output infos not match rank 0, subgraph: 0, details: outputs count 0 "
     "not equal to 1"),
    ([[WHOLE], [WHOLE], [LATER], [RankGraph([], [X])]], 2, "Rank 3 output infos not match rank 2, subgraph: 0, "
     "details: output 0 is float32[128, 96], expected float32[128, 16]"),
    ([[WHOLE], [RankGraph([SMALL], [Y])]], 2, f"{EXPECT} 1 "),
    ([[WHOLE], [LATER], [WHOLE]], 3, f"{EXPECT} 2 "),
    ([[WHOLE], [WHOLE, WHOLE]], 1, "The number of graph not match in different agent"),
]  # fmt: skip


@pytest.mark.parametrize(("ranks", "stages", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_models_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, ranks: list[list[RankGraph]], stages: int, text: str
) -> None:
    with pytest.raises(RuntimeError) as raised:
        check(monkeypatch, ranks, stages)
    assert str(raised.value).startswith(text)


@pytest.mark.parametrize(
    ("ranks", "stages"),
    [
        ([[WHOLE], [WHOLE]], 1),
        ([[WHOLE], [RankGraph([NAMED], [Y])]], 1),
        ([[WHOLE], [WHOLE], [LATER], [LATER]], 2),
        ([[WHOLE], [WHOLE]], 2),
        ([[RankGraph([X], [])], [LATER]], 2),
    ],
)
def test_models_that_fit(monkeypatch: pytest.MonkeyPatch, ranks: list[list[RankGraph]], stages: int) -> None:
    check(monkeypatch, ranks, stages)


def check(monkeypatch: pytest.MonkeyPatch, ranks: list[list[RankGraph]], stages: int) -> None:
    models = {f"{rank}.{n}": model for rank, subgraphs in enumerate(ranks) for n, model in enumerate(subgraphs)}
    monkeypatch.setattr(rank_models, "_read", models.__getitem__)
    check_models([[f"{rank}.{n}" for n in range(len(subgraphs))] for rank, subgraphs in enumerate(ranks)], stages)


def test_files() -> None:
    one, other = str(DATA / "dynamic.mindir"), str(DATA / "scalar.mindir")
    check_models([[one], [one]], 1)
    check_models([[str(DATA / "enc.mindir")], [one]], 1)
    with pytest.raises(RuntimeError, match="not match rank 0"):
        check_models([[one], [other]], 1)
    with pytest.raises(RuntimeError, match="is not a MindIR file"):
        check_models([[__file__]], 1)
