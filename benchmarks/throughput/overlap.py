"""How busy a stage is kept by the stage before it."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from benchmarks.handlers.overlap import REPORT
from benchmarks.load.wrk import wrk_of
from benchmarks.servers.msx import serve_stages

BATCH = 8
CONNECTIONS = 64
EDGE = 1.0
"""Seconds at the begin and at the end of the load that do not count."""
STAGES = f"""\
jobQueueSize: 1000
stages:
  decode: {{handler: "overlap.py:Decode", workers: 2, device: none}}
  infer: {{handler: "overlap.py:Infer", workers: 1, device: none, batchSize: {BATCH}, maxBatchDelay: 100}}
"""

Calls = Sequence[tuple[float, float, int]]
"""Begin, end and size of each call."""


def busy_share(seconds: float) -> tuple[float, int]:
    """The share of its time in which the second stage has a full batch, and how many of them it had."""
    with (
        serve_stages("overlap", STAGES) as server,
        wrk_of(b"item", {"Content-Type": "application/octet-stream"}) as load,
    ):
        path = "/predictions/overlap"
        load.run(server.address, path, connections=CONNECTIONS, seconds=seconds + 2 * EDGE)
        calls = httpx.post(server.address.url + path, content=REPORT, timeout=60).json()
    return share_of_full(calls, BATCH)


def share_of_full(calls: Calls, batch: int, edge: float = EDGE) -> tuple[float, int]:
    first, last = calls[0][0] + edge, calls[-1][1] - edge
    spans = [min(end, last) - max(begin, first) for begin, end, size in calls if size == batch]
    counted = [span for span in spans if span > 0]
    return sum(counted) / (last - first), len(counted)
