"""`Server-Timing`: who asks is told where the time went, and nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from msx_frontend.metrics.timed_sink import timing


def job(**instants: float) -> Any:
    whole = {"enqueued": 10.0, "started": 0.0, "first_chunk": 0.0, **instants}
    return SimpleNamespace(**whole, sink=SimpleNamespace(started=9.5))


@pytest.mark.parametrize(
    ("instants", "wanted"),
    [
        (
            {"started": 10.25, "first_chunk": 11.0},
            "parse;dur=500.000, queue;dur=250.000, batch;dur=0.000, handler;dur=750.000, rest;dur=1000.000",
        ),
        ({}, "parse;dur=500.000, queue;dur=2000.000, batch;dur=0.000, handler;dur=0.000, rest;dur=0.000"),
    ],
)
def test_spans_of_a_job(instants: dict[str, float], wanted: str) -> None:
    assert timing(job(**instants), now=12.0) == wanted
