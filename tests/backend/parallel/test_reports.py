"""Reports of a rank to the frontend after a call."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from msx_backend.parallel.reports import COLLECTIVES, CallReport
from msx_protocol import CallDone
from msx_sdk.request import InferenceRequest
from tests.backend.parallel.ranks import Rank


def told(error: BaseException | None = None, steps: int = 0) -> CallDone:
    rank = Rank(0, lambda rank, data, context: [])
    report = CallReport(7, [InferenceRequest("a", {}, number=3), InferenceRequest("b", {}, number=4)])
    report.steps = steps
    report.send(rank.replies, error)
    ((message, body),) = rank.told()
    rank.close()
    assert body == b""
    assert isinstance(message, CallDone)
    return message


def test_requests_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, COLLECTIVES, raising=False)
    assert told(steps=5) == CallDone(7, [3, 4], 5, {}, "")


def test_collectives_are_counted_where_the_handler_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"all_reduce[0,1]": 2}
    monkeypatch.setitem(sys.modules, COLLECTIVES, SimpleNamespace(counts=lambda: counts))
    assert told().collectives == counts


def test_an_error_in_one_line() -> None:
    assert told(ValueError("two\nlines")).error == "ValueError: two lines"
    assert told(SystemExit(3)).error == "the handler called sys.exit(3)"
    assert told(KeyError()).error == "KeyError"
