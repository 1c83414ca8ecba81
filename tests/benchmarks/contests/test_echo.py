"""Who takes part in a contest of echo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from benchmarks.contests import echo
from benchmarks.contests.contest import Contestant
from benchmarks.contests.echo import Entrant, enter, versions
from benchmarks.peers import torchserve
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from tests.benchmarks.contestants import contestant


def test_who_cannot_be_had_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        if name == "msx":
            yield contestant(name)
        else:
            raise NotInstalled("There is no Java.")

    async def check(*_: object) -> None: ...

    monkeypatch.setattr(echo, "_check", check)
    report = Report("sample", "command", machine())
    entrants = [Entrant("msx", "", join), Entrant("torchserve", "", join), Entrant("torchserve", "best", join)]
    with ExitStack() as stack:
        assert [one.name for one in enter(stack, entrants, 128, report)] == ["msx"]
    assert report.notes == ["No comparison: There is no Java."]


def test_versions_of_the_peers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchserve, "java", lambda: "openjdk 17")
    assert versions(["msx", "mosec"]) == "Peers: mosec 0.9.8"
    assert versions(["torchserve"]).startswith("Peers: torchserve 0.12.0, torch ")
    assert versions(["torchserve"]).endswith("; openjdk 17")
    assert versions(["msx"]) == "Peers: none"
