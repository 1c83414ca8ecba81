from __future__ import annotations

import signal

import pytest

from msx_frontend.workers.group_end import exited


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
