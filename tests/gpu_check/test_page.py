"""Rows, the summary and the exit code of the page."""

from __future__ import annotations

import pytest

from tests.gpu_check.page import (
    FAILED,
    NOT_RUN,
    PASSED,
    FailedError,
    NotRunError,
    Outcome,
    expect,
    has_failed,
    summary,
    tried,
)


def raising(error: Exception) -> str:
    raise error


@pytest.mark.parametrize(
    ("error", "result", "figures"),
    [
        (NotRunError("here is one GPU"), NOT_RUN, "here is one GPU"),
        (FailedError("it computed on the CPU"), FAILED, "it computed on the CPU"),
        (RuntimeError("CUDA error"), FAILED, "RuntimeError: CUDA error"),
    ],
)
def test_what_a_check_raises_is_in_its_row(error: Exception, result: str, figures: str) -> None:
    assert tried("a check", raising, error) == Outcome("a check", result, figures)


def test_a_row_stays_one() -> None:
    assert tried("a check", str, "a | b\nc").row() == "| a check | passed | a \\| b c |"
    assert len(Outcome("a check", FAILED, "log " * 10_000).row()) < 700


def test_the_summary_and_the_exit_code() -> None:
    passed, failed, other = (Outcome("a", result, "") for result in (PASSED, FAILED, NOT_RUN))
    assert summary([passed, other, passed]) == "2 passed, 0 **failed**, 1 not run"
    assert not has_failed([passed, other])
    assert has_failed([passed, failed])


def test_what_differs_is_said() -> None:
    expect(1, 1, "gpu_id")
    with pytest.raises(FailedError, match=r"gpu_id: None where 0 is right"):
        expect(None, 0, "gpu_id")
