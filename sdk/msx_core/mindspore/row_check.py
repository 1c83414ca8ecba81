"""Compares answers of a network at warm-up: of a row alone and among others, and with answers that were stored."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msx_core.config import ModelConfig, parse_model_config
from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.mindir import DYNAMIC_RANK, TensorSpec, answers_beside, read_signature
from msx_core.mindir_indices import index_limits
from msx_core.mindspore.comparison import compared
from msx_core.mindspore.difference import Difference, differ, tolerance_of
from msx_core.mindspore.joined_rows import ANY, RowNetwork, batch_axis
from msx_core.mindspore.sample_rows import UnknownShapeError, sample_rows
from msx_core.mindspore.stored_rows import read_stored

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

log = logging.getLogger("msx.mindspore")

COUNTER = "msx_row_checks_failed_total"
ROWS = 3
_BRANCHES = frozenset(("raise", "Switch", "switch"))
"""MindSpore 2.10 may compute them wrongly where an axis is open."""
_STATE = ("Assign", "ScatterUpdate", "ScatterNdUpdate", "ScatterAdd", "ScatterNdAdd")
"""Prefixes of operators that change a parameter: a made-up row would stay in it."""
EXPORT_WAYS = "export it with a fixed number of rows, or serve the network by --handler checkpoint"
CELL_WAYS = "leave out mindspore: {mode: graph}, or give batchSize: 1"
_AS_IT_IS = "batchCheck: false in model-config.yaml serves it as it is (docs/wrong-answers.md)"


class RowAnswers(NamedTuple):
    """The answers to one row alone, and again; and to three rows, of which it is the first, and the last."""

    alone: list[Array]
    again: list[Array]
    first: list[Array]
    last: list[Array]


def check_rows(
    network: RowNetwork,
    name: str,
    context: Context,
    limits: Mapping[str, int],
    *,
    judged: bool = False,
    ways: str = EXPORT_WAYS,
) -> None:
    """Compare a row's answer alone with its answers among others.

    `name`: the file, for messages; `limits`: upper bounds of integer inputs; `judged`: rows are independent also with
    `batchSize: 1`; `ways`: what mends it. Nothing is compared where the first axis of an input or output is not open,
    and without warm-up. Raises HandlerLoadError where an output of floats differs by more than `batchTolerance`. That
    is a WARNING where requests are not joined, since the first axis may count something else then, and an ERROR for a
    model that an older server has left.
    """
    config = parse_model_config(context.model_yaml_config)[0]
    if not config.batch_check or config.warmup is False or batch_axis(network) != ANY:
        return
    context.report_progress("comparing rows")
    answers = _answers(network, name, _given(config, network.inputs), limits)
    if answers is None:
        return
    for wrong in _wrong_outputs(network.outputs, answers, config.batch_tolerance, name):
        if judged or context.info.batch_size > 1:
            _refuse(f"{name}: {wrong}", f"{ways}; {_AS_IT_IS}", context)
        else:
            log.warning("%s: %s. If the first axis counts independent rows, %s; %s", name, wrong, ways, _AS_IT_IS)


def check_file(network: RowNetwork, path: Path, context: Context) -> None:
    """Compare the answers of a MindIR with those stored beside it, and its rows with each other, unless it keeps state
    from call to call. Raises HandlerLoadError."""
    config = parse_model_config(context.model_yaml_config)[0]
    operators = read_signature(path).op_types
    if state := sorted(name for name in operators if name.startswith(_STATE)):
        log.info("%s: nothing is compared, because calls change its parameters (%s)", path.name, state[0])
        return
    if config.batch_check and config.warmup is not False:
        check_stored(network, path, config.batch_tolerance)
    check_rows(network, path.name, context, index_limits(path), judged=not _BRANCHES.isdisjoint(operators))


def check_stored(network: RowNetwork, path: Path, tolerance: float | None) -> None:
    """Raises HandlerLoadError where the MindIR does not give the answers stored beside it."""
    stored = read_stored(path)
    if stored is None:
        return
    try:
        wrong = [one for one in compared(network, stored.answers, stored.inputs, tolerance) if not one.equal]
    except (RuntimeError, TypeError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise HandlerLoadError(f"{path.name} cannot be given the rows of {answers_beside(path).name}: {why}") from None
    if wrong:
        sentence = f"{path.name} does not answer as the network it was exported from: {wrong[0]}"
        raise HandlerLoadError(f"{sentence}. Do one of these: {EXPORT_WAYS}; {_AS_IT_IS}")


def _answers(network: RowNetwork, name: str, given: Mapping[str, Any], limits: Mapping[str, int]) -> RowAnswers | None:
    """None where nothing can be compared. All calls are made in any case: other ranks make them, too."""
    try:
        rows = sample_rows(network.inputs, ROWS, limits, given)
        alone, backwards = [array[:1] for array in rows], [array[::-1] for array in rows]
        return RowAnswers(*(network(arrays) for arrays in (alone, alone, rows, backwards)))
    except UnknownShapeError as error:
        log.info("%s: rows are not compared: %s; give one as example in model-config.yaml", name, error)
    except Exception as error:
        log.warning("%s: rows are not compared: it fails on made-up ones: %s", name, str(error).partition("\n")[0])
    return None


def _wrong_outputs(specs: Sequence[TensorSpec], answers: RowAnswers, wanted: float | None, name: str) -> Iterator[str]:
    """A sentence for each output that differs. Only outputs with an answer for each row are compared."""
    for at, alone in enumerate(answers.alone):
        output = specs[at].name if at < len(specs) else f"output_{at}"
        dtype = specs[at].dtype if at < len(specs) else alone.dtype.name
        first, last = answers.first[at], answers.last[at]
        if at < len(specs) and specs[at].shape != DYNAMIC_RANK and first.ndim != len(specs[at].shape):
            yield f"{output} of {ROWS} rows has the shape {list(first.shape)}, and the file says {_shape(specs[at])}"
            continue
        if alone.shape[:1] != (1,) or {first.shape, last.shape} != {(ROWS, *alone.shape[1:])}:
            continue
        tolerance = wanted or tolerance_of(dtype)
        if differ(answers.again[at], alone).part > tolerance:
            log.info("%s: %s is random: the same row has two answers", name, output)
            continue
        places = {f"first of {ROWS} rows": first[:1], f"last of {ROWS} rows": last[-1:]}
        found = {place: differ(row, alone) for place, row in places.items()}
        place, difference = max(found.items(), key=lambda item: item[1].size)
        if alone.dtype.kind not in "fc":
            if difference.size:
                log.warning("%s: %s", name, _said(output, place, difference, tolerance))
        elif difference.part > tolerance:
            yield _said(output, place, difference, tolerance)


def _said(output: str, place: str, difference: Difference, tolerance: float) -> str:
    return (
        f"{output} of a row depends on the rows beside it: it is {difference.wanted:.4g} alone, and "
        f"{difference.given:.4g} as the {place}. The difference is {difference.part:.2g} of its largest value; "
        f"batchTolerance is {tolerance:g}"
    )


def _shape(spec: TensorSpec) -> str:
    return str(list(spec.shape)).replace("-1", "n")


def _refuse(sentence: str, ways: str, context: Context) -> None:
    if not context.info.from_older_server:
        raise HandlerLoadError(f"{sentence}. Do one of these: {ways}")
    help = "Outputs of models from older servers that differ at warm-up, and are served until the next release"
    context.metrics.counter(COUNTER, help=help).update()
    log.error("%s. It is served because it was before; the next release refuses it. Until then: %s", sentence, ways)


def _given(config: ModelConfig, inputs: Sequence[TensorSpec]) -> Mapping[str, Any]:
    """The values of inputs in the yaml's `example:`, by name; none where they are not written so."""
    example = config.example[0] if isinstance(config.example, list) and config.example else config.example
    if isinstance(example, Mapping) and len(example) == 1:
        example = example.get("body", example)
    if isinstance(example, Mapping):
        return example
    return {inputs[0].name: example} if len(inputs) == 1 else {}
