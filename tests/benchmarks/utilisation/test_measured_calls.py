"""Figures that a worker notes of its device."""

from __future__ import annotations

import importlib
import json

import pytest

from benchmarks.handlers.measured_calls import FEWEST, FIGURES, MeasuredCalls
from benchmarks.servers.msx import HANDLERS


def test_figures_have_each_call_once_and_those_of_a_loop() -> None:
    measured, looped = MeasuredCalls(bare=0.0), list[str]()
    assert measured.run(16, lambda: "answer") == "answer"
    figures = measured.figures(lambda: looped.append("call"))
    ((began, ended, size),) = figures["calls"]
    assert (began <= ended, size) == (True, 16)
    assert len(figures["bare"]) == len(looped) == FEWEST
    assert measured.figures(lambda: None)["calls"] == []


def test_figures_are_found_among_what_a_load_has_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HANDLERS)  # as in an archive, where its modules lie side by side
    clock = importlib.import_module("device_clock").DeviceClock(device=0.01, python=0.0, bare=0.0)
    clock.compute()
    assert clock.run([b"body"] * 4) == [b"body"] * 4
    body, figures = clock.run([b"body", FIGURES])
    assert body == b"body"
    assert [size for *_, size in json.loads(figures.removeprefix(FIGURES))["calls"]] == [4]
