"""Rows compared at warm-up, on networks that are plain functions. MindSpore itself is not needed for that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.mindspore import stored_rows
from msx_core.mindspore.row_check import COUNTER, check_rows, check_stored
from msx_core.mindspore.stored_rows import StoredRows
from msx_sdk import HandlerLoadError
from msx_sdk.context import Context, ModelInfo

np = pytest.importorskip("numpy")

X = TensorSpec("x", "float32", (-1, 4))
Y = TensorSpec("y", "float32", (-1, 4))


class Plain:
    """A network of functions from arrays to arrays; `calls` are the numbers of rows it was called with."""

    def __init__(
        self, run: Callable[..., Any], inputs: tuple[TensorSpec, ...] = (X,), outputs: tuple[TensorSpec, ...] = (Y,)
    ) -> None:
        self.inputs, self.outputs, self._run = inputs, outputs, run
        self.calls: list[int] = []

    def __call__(self, arrays: Any) -> Any:
        self.calls.append(len(arrays[0]))
        made = self._run(*arrays)
        return list(made) if isinstance(made, tuple) else [made]


def context(older: bool = False, **config: Any) -> Context:
    return Context(ModelInfo("m", config=config, batch_size=8, from_older_server=older))


def doubled(x: Any) -> Any:
    return x * 2


def shifted(x: Any) -> Any:
    """The second row and later ones get something of the first."""
    return x * 2 + np.arange(len(x), dtype=np.float32)[:, None]


def scaled(x: Any) -> Any:
    return x * len(x)


def test_rows_alone_and_first_and_last_among_others_are_compared() -> None:
    network = Plain(doubled)
    check_rows(network, "net.mindir", context(), {})
    assert network.calls == [1, 1, 3, 3]


@pytest.mark.parametrize("run", [shifted, scaled, lambda x: x / x.shape[0] if len(x) > 1 else x * np.nan])
def test_a_row_that_depends_on_its_neighbours_is_refused(run: Any) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        check_rows(Plain(run), "net.mindir", context(), {})
    words = str(caught.value)
    assert words.startswith("net.mindir: y of a row depends on the rows beside it: it is ")
    assert "alone, and" in words
    assert "batchTolerance is 0.001" in words
    for way in ("fixed number of rows", "--handler checkpoint", "batchCheck: false"):
        assert way in words


@pytest.mark.parametrize(
    ("dtype", "config", "error", "refused"),
    [
        ("float32", {}, 5e-4, False),
        ("float32", {}, 2e-3, True),
        ("float16", {}, 2e-2, False),
        ("bfloat16", {}, 2e-2, False),
        ("float16", {}, 4e-2, True),
        ("float32", {"batchTolerance": 0.01}, 5e-3, False),
        ("float32", {"batchTolerance": 1e-5}, 1e-4, True),
        ("float32", {"batchCheck": False}, 1.0, False),
        ("float32", {"warmup": False}, 1.0, False),
    ],
)
def test_the_tolerance(dtype: str, config: Any, error: float, refused: bool) -> None:
    """`error` is a part of the output's largest value."""

    def run(x: Any) -> Any:
        answer = np.tile(np.array([100, -3], np.float32), (len(x), 1))
        return answer + np.array([0, 100 * error], np.float32) * (len(x) > 1)

    network = Plain(run, outputs=(TensorSpec("y", dtype, (-1, 2)),))
    if refused:
        with pytest.raises(HandlerLoadError):
            check_rows(network, "n", context(**config), {})
    else:
        check_rows(network, "n", context(**config), {})


def test_without_batches_it_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    alone = Context(ModelInfo("m"))
    check_rows(Plain(scaled), "n", alone, {})
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "y of a row depends on the rows beside it" in record.message
    assert "If the first axis counts independent rows, export it with a fixed number" in record.message
    with pytest.raises(HandlerLoadError):
        check_rows(Plain(scaled), "n", alone, {}, judged=True)


def test_a_random_network_is_logged_and_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    random = np.random.default_rng(1)
    with caplog.at_level(logging.INFO):
        check_rows(Plain(lambda x: random.random(x.shape)), "n", context(), {})
    assert "n: y is random: the same row has two answers" in caplog.text


def test_integers_are_logged_and_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    outputs = (Y, TensorSpec("top", "int64", (-1,)))
    check_rows(Plain(lambda x: (x, np.arange(len(x)) + len(x)), outputs=outputs), "n", context(), {})
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "top of a row depends on the rows beside it: it is 1 alone, and 5 as the last of 3 rows" in record.message


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([TensorSpec("x", "float32", (4, 4))], [Y]),
        ([X], [TensorSpec("y", "float32", (4,))]),
        ([X], [Y, TensorSpec("mean", "float32", ())]),
        ([X, TensorSpec("table", "float32", (7, 4))], [Y]),
    ],
)
def test_nothing_is_compared_where_an_axis_is_fixed(inputs: Any, outputs: Any) -> None:
    network = Plain(scaled, tuple(inputs), tuple(outputs))
    check_rows(network, "n", context(), {})
    assert network.calls == []


def test_an_output_without_a_row_for_each_is_not_compared() -> None:
    check_rows(Plain(lambda x: x.sum(0), outputs=()), "checkpoint", context(), {})
    check_rows(Plain(lambda x: np.ones((len(x), len(x)))), "n", context(), {})
    check_rows(Plain(lambda x: np.ones((7, 4))), "n", context(), {})
    with pytest.raises(HandlerLoadError, match="output_1 of a row"):
        check_rows(Plain(lambda x: (x.sum(0), scaled(x)), outputs=()), "checkpoint", context(), {})


def test_texts_are_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    names = TensorSpec("names", "str", (-1,))
    check_rows(Plain(lambda x: np.array([f"row of {len(x)}"] * len(x)), outputs=(names,)), "n", context(), {})
    (record,) = caplog.records
    assert record.levelname == "WARNING"


def test_an_output_of_another_rank_than_the_file_says_is_refused() -> None:
    with pytest.raises(HandlerLoadError, match=r"y of 3 rows has the shape \[1\], and the file says \[n, 4\]"):
        check_rows(Plain(lambda x: np.ones(1)), "n", context(), {})


@pytest.mark.parametrize("spec", [TensorSpec("x", "float32", DYNAMIC_RANK), TensorSpec("x", "str", (-1, 2))])
def test_what_has_no_known_shape_or_type_is_said(spec: TensorSpec, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        check_rows(Plain(scaled, (spec,)), "n", context(), {})
    assert "n: rows are not compared: the input 'x' has" in caplog.text


def test_a_network_that_fails_on_made_up_rows_is_said(caplog: pytest.LogCaptureFixture) -> None:
    def fails(x: Any) -> Any:
        raise RuntimeError("too short\nC++ stack")

    check_rows(Plain(fails), "n", context(), {})
    assert [record.message for record in caplog.records] == [
        "n: rows are not compared: it fails on made-up ones: too short"
    ]


def test_integers_of_inputs_stay_below_their_table() -> None:
    seen: list[Any] = []
    specs = (
        TensorSpec("ids", "int32", (-1, -1)),
        TensorSpec("mask", "int64", (-1, -1)),
        TensorSpec("pixels", "uint8", (-1, 3)),
        TensorSpec("flags", "bool", (-1, 3)),
    )

    def run(*arrays: Any) -> Any:
        seen.append(arrays)
        return arrays[0] * 1.0

    check_rows(Plain(run, specs, (TensorSpec("y", "float32", (-1, -1)),)), "n", context(), {"ids": 7, "pixels": 999})
    ids, mask, pixels, flags = seen[2]
    assert [array.dtype.name for array in seen[2]] == ["int32", "int64", "uint8", "bool"]
    assert set(np.unique(ids)) == set(range(7))
    assert set(np.unique(mask)) == {0, 1}
    assert pixels.max() < 255
    assert ids.shape == mask.shape == (3, 32)
    assert flags.shape == (3, 3)


@pytest.mark.parametrize(
    "example",
    [
        {"ids": [[5, 9, 7]]},
        {"ids": [5, 9, 7]},
        [{"ids": [5, 9, 7]}, {"ids": [1]}],
        {"body": [[5, 9, 7]]},
        [[5, 9, 7]],
    ],
)
def test_values_are_taken_from_the_example(example: Any) -> None:
    seen: list[Any] = []

    def run(ids: Any) -> Any:
        seen.append(ids)
        return ids * 1.0

    network = Plain(run, (TensorSpec("ids", "int32", (-1, -1)),), (TensorSpec("y", "float32", (-1, -1)),))
    check_rows(network, "n", context(example=example), {"ids": 3})
    assert seen[0].tolist() == [[5, 9, 7]]
    assert np.sort(seen[2], axis=1).tolist() == [[5, 7, 9]] * 3


def test_a_model_of_an_older_server_is_served_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    old = context(older=True)
    check_rows(Plain(scaled), "net.mindir", old, {})
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "y of a row depends on the rows beside it" in record.message
    assert [(sample.name, sample.value) for sample in old.metrics.take()] == [(COUNTER, 1.0)]


def test_answers_that_are_stored_are_compared_at_each_number_of_rows(tmp_path: Path) -> None:
    mindir = tmp_path / "net.mindir"
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    network = Plain(doubled)
    check_stored(network, mindir, None)
    assert network.calls == []
    StoredRows([rows], [rows * 2]).write(mindir)
    check_stored(network, mindir, None)
    assert network.calls == [1, 2, 3]
    with pytest.raises(HandlerLoadError, match=r"net\.mindir does not answer as the network .* y of 2 row"):
        check_stored(Plain(lambda x: x * (3 if len(x) == 2 else 2)), mindir, None)
    with pytest.raises(HandlerLoadError, match=r"has the shape \[1, 2\], not \[1, 4\]"):
        check_stored(Plain(lambda x: x[:, :2]), mindir, None)
    with pytest.raises(HandlerLoadError, match=r"cannot be given the rows of net\.expected\.npz"):
        check_stored(Plain(lambda x: (x, x)), mindir, None)


def test_stored_answers_of_a_fixed_number_of_rows(tmp_path: Path) -> None:
    mindir = tmp_path / "net.mindir"
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    StoredRows([rows], [rows * 2]).write(mindir)
    network = Plain(doubled, (TensorSpec("x", "float32", (2, 4)),), (TensorSpec("y", "float32", (2, 4)),))
    check_stored(network, mindir, None)
    assert network.calls == [2, 2, 2, 2]


def test_stored_answers_of_outputs_that_are_not_rows(tmp_path: Path) -> None:
    mindir = tmp_path / "net.mindir"
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    StoredRows([rows], [rows.mean(0)]).write(mindir)
    network = Plain(lambda x: x.mean(0), outputs=(TensorSpec("y", "float32", (4,)),))
    check_stored(network, mindir, None)
    assert network.calls == [3]


def test_stored_answers_that_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "net.expected.npz").write_bytes(b"PK nonsense")
    with pytest.raises(HandlerLoadError, match=r"net\.expected\.npz cannot be read, export the network anew"):
        check_stored(Plain(doubled), tmp_path / "net.mindir", None)
    with patch.object(stored_rows, "LARGEST", 100):
        StoredRows([np.zeros((3, 4))], [np.zeros((3, 4))]).write(tmp_path / "net.mindir")
        with pytest.raises(HandlerLoadError, match="it has 448 bytes of arrays, and at most 100 are read"):
            check_stored(Plain(doubled), tmp_path / "net.mindir", None)
    np.savez(tmp_path / "net.expected.npz", other=np.zeros(3))
    with pytest.raises(HandlerLoadError, match="has no rows"):
        check_stored(Plain(doubled), tmp_path / "net.mindir", None)
