"""Figures that a worker notes of its device."""

from __future__ import annotations

from benchmarks.handlers.measured_calls import FEWEST, MeasuredCalls


def test_figures_have_each_call_once_and_those_of_a_loop() -> None:
    measured, looped = MeasuredCalls(bare=0.0), list[str]()
    assert measured.run(16, lambda: "answer") == "answer"
    figures = measured.figures(lambda: looped.append("call"))
    ((began, ended, size),) = figures["calls"]
    assert (began <= ended, size) == (True, 16)
    assert len(figures["bare"]) == len(looped) == FEWEST
    assert measured.figures(lambda: None)["calls"] == []
