"""The tables of calls, on the emulation and on MindSpore's graph front end."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.emulated_ascend.calls import Case
from tests.emulated_ascend.front_end import primitive
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
    return OPERATORS[case.operator](**case.attributes)(**case.arguments())


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


def test_each_case_has_a_name_of_its_own() -> None:
    names = [str(case) for case in (*ACCEPTED, *REFUSED)]
    assert [name for name in names if names.count(name) > 1] == []


@pytest.mark.parametrize("name", OPERATORS)
def test_constructors_and_calls_are_those_of_mindspore(name: str) -> None:
    own, real = OPERATORS[name], primitive(name)
    constructor = getattr(real.__init__, "__wrapped__", real.__init__)
    assert _parameters(own.compute) == _parameters(real.__call__)
    assert (_parameters(own.__init__) if "__init__" in vars(own) else []) == _parameters(constructor)


def _parameters(function: Any) -> list[tuple[str, Any]]:
    return [(it.name, it.default) for it in inspect.signature(function).parameters.values() if it.name != "self"]
