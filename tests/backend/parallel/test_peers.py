"""A rank that waits to be ended ends by itself when the server does not end it."""

from __future__ import annotations

import os
import time

import pytest

from msx_backend.parallel.peers import GRACE, wait_for_the_end
from tests.backend.parallel.ranks import Gone


def test_it_ends_after_its_grace(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    done: list[tuple[str, float]] = []

    def leave(status: int) -> None:
        done.append(("exit", status))
        raise Gone

    monkeypatch.setattr(time, "sleep", lambda seconds: done.append(("sleep", seconds)))
    monkeypatch.setattr(os, "_exit", leave)
    with caplog.at_level("INFO"), pytest.raises(Gone):
        wait_for_the_end("rank 1")
    assert done == [("sleep", GRACE), ("exit", 1)]
    assert caplog.messages == ["the plan socket of rank 1 is closed: this rank waits to be ended"]
