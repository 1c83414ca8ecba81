"""The tables of calls, on the emulation and on MindSpore's graph front end."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend.calls import Case
from tests.emulated_ascend.front_end import primitive
from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.inputs import Arguments
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.registry import OPERATORS
from tests.emulated_ascend.tables import ACCEPTED, REFUSED

pytestmark = pytest.mark.mindspore
ROOT = Path(__file__).parents[2]

Answers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """MindSpore writes its analyses into the current folder."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.emulated_ascend.front_end"],
        cwd=tmp_path_factory.mktemp("front_end"),
        env={**os.environ, "PYTHONPATH": str(ROOT), "GLOG_v": "4"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: Answers = json.loads(done.stdout)
    return answers


def run(case: Case) -> Any:
    return _run(case, case.arguments())


def _run(case: Case, arguments: Arguments) -> Any:
    return OPERATORS[case.operator](**case.attributes)(**arguments)


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_what_is_accepted_has_the_shapes_and_dtypes_of_the_front_end(case: Case, front_end: Answers) -> None:
    result, answer = run(case), front_end[str(case)]
    assert answer["accepts"], answer["says"]
    if case.operator != "ReshapeAndCache":  # a graph with it does not run, so nothing is heard of its result
        results = result if isinstance(result, tuple) else (result,)
        assert answer["results"] == [[list(it.shape), str(it.dtype)] for it in results]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_is_wrong_is_refused(case: Case) -> None:
    with pytest.raises(Refused) as raised:
        run(case)
    assert case.says in str(raised.value)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_the_table_says_what_the_front_end_lets_pass(case: Case, front_end: Answers) -> None:
    assert front_end[str(case)]["accepts"] == case.front_end, front_end[str(case)]


OPTIONAL = {
    ("ReshapeAndCache", "value"),
    ("ReshapeAndCache", "value_cache"),
    ("PagedAttention", "q_seq_lens"),
    ("PagedAttention", "attn_mask"),
    ("QuantBatchMatmul", "bias"),
    ("QuantBatchMatmul", "pertokenScaleOptional"),
    ("WeightQuantBatchMatmul", "antiquant_offset"),
}
AXES = {"ReshapeAndCache": ("key", "value"), "RmsNorm": ("x",), "AddRmsNorm": ("x1",), "Swiglu": ("input",)}
"""Arguments that may have another axis in front."""


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_each_tensor_has_one_dtype_and_number_of_axes(case: Case) -> None:
    """Each is replaced by what is not a tensor, by one of another dtype, and by one with one more axis."""
    for name, argument in case.arguments().items():
        listed = isinstance(argument, list)
        own = argument[0] if listed else argument
        if not isinstance(own, ms.Tensor):
            continue
        wrong = [ms.Tensor(np.zeros(own.shape, np.uint8))]
        if name not in AXES.get(case.operator, ()):
            wrong.append(own.reshape(1, *own.shape))
        if (case.operator, name) not in OPTIONAL:
            wrong.append(None)
        for other in wrong:
            with pytest.raises(Refused, match=name):
                _run(case, {**case.arguments(), name: [other] if listed else other})


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_16_bits_are_not_mixed(case: Case) -> None:
    others = {ms.float16: ms.bfloat16, ms.bfloat16: ms.float16}
    tensors = {name: it for name, it in case.arguments().items() if getattr(it, "dtype", None) in others}
    if len(tensors) < 2:
        return
    for name, own in tensors.items():
        other = tensor(floats(own), others[own.dtype])
        with pytest.raises(Refused, match="dtype must be"):
            _run(case, {**case.arguments(), name: other})


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_what_no_decoder_passes_is_refused(case: Case) -> None:
    given, passed = case.arguments(), inspect.signature(OPERATORS[case.operator].compute).parameters.values()
    for name in (it.name for it in passed if it.default is None):
        if given.get(name) is None and (case.operator, name) not in OPTIONAL:
            with pytest.raises(Refused, match=name):
                _run(case, {**given, name: ms.Tensor([1], ms.float16)})


def test_each_case_has_a_name_of_its_own() -> None:
    names = [str(case) for case in (*ACCEPTED, *REFUSED)]
    assert [name for name in names if names.count(name) > 1] == []


@pytest.mark.parametrize("name", OPERATORS)
def test_constructors_and_calls_are_those_of_mindspore(name: str) -> None:
    own, real = OPERATORS[name], primitive(name)
    constructor = getattr(real.__init__, "__wrapped__", real.__init__)
    called = _parameters(real.__call__)
    assert called in ([("args", inspect.Parameter.empty)], _parameters(own.compute))  # a collective takes any
    assert (_parameters(own.__init__) if "__init__" in vars(own) else []) == _parameters(constructor)


def _parameters(function: Any) -> list[tuple[str, Any]]:
    return [(it.name, it.default) for it in inspect.signature(function).parameters.values() if it.name != "self"]
