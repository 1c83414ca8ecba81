from __future__ import annotations

import signal

import pytest

from msx_frontend.workers.group_end import exited, lost


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (1, "exited with code 1"),
        (-signal.SIGTERM, "was ended by signal 15 (SIGTERM)"),
        (-signal.SIGKILL, "was ended by signal 9 (SIGKILL)"),
    ],
)
def test_an_exit_has_a_code_or_a_signal(code: int, words: str) -> None:
    end = exited(1, 4711, code, "")
    assert end.reason == f"Rank 1 (pid 4711) {words}."
    assert end.out_of_memory is (code == -signal.SIGKILL)


@pytest.mark.parametrize(
    ("code", "brief"),
    [
        (-signal.SIGKILL, "killed by SIGKILL, perhaps out of memory"),
        (-signal.SIGTERM, "killed by SIGTERM"),
        (-signal.SIGSEGV, ""),
        (-signal.SIGBUS, ""),
        (1, ""),
    ],
)
def test_who_is_killed_from_outside_did_not_fail_by_itself(code: int, brief: str) -> None:
    end = exited(1, 4711, code, "")
    assert (end.killed, end.brief) == (bool(brief), brief)
    named = exited(1, 4711, code, "", "rank 1").brief
    assert named == (f"rank 1: {brief}" if brief else "")


def test_the_end_of_a_node_is_no_failure_of_its_ranks() -> None:
    assert lost(0, "the agent on node a has ended").killed
