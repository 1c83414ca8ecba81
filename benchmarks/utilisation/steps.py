"""The steps of a lone request, as the time between two marks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from benchmarks.reports.figures import median


class Step(NamedTuple):
    mark: str
    """Its end; it begins with the mark before."""
    where: str
    what: str


STEPS = (
    Step("received", "kernel", "to the server: its loop wakes and has read the last byte"),
    Step("parsed", "server", "parse: the head is the last one's, the body becomes a job's fields"),
    Step("routed", "server", "route: model and version are found"),
    Step("batched", "server", "queue: until the end of the loop's turn, a batch is made"),
    Step("sent", "server", "frame to the worker: encoded, written"),
    Step("read", "kernel", "to the worker: its thread wakes and has read"),
    Step("preprocess", "worker", "read: the frame becomes requests, requests become `data`"),
    Step("preprocess done", "worker", "`preprocess` (empty)"),
    Step("inference", "worker", "hand-over from `preprocess` to `inference`"),
    Step("inference done", "worker", "`inference`: the call of the device"),
    Step("postprocess", "worker", "hand-over from `inference` to `postprocess`"),
    Step("postprocess done", "worker", "`postprocess` (empty)"),
    Step("replied", "worker", "encode: the reply becomes a frame, written"),
    Step("back", "kernel", "back to the server: its loop wakes and has read"),
    Step("answered", "server", "frame from the worker: read, its job found"),
    Step("written", "server", "reply: head and body, written"),
    Step("received by the client", "kernel", "to the client: it wakes and has read the last byte"),
)
CALL = "inference done"
WRITES = ("sent", "replied", "written")
"""Marks at the end of a write."""


def instants(marks: Mapping[str, Sequence[int]], begun: int, ended: int) -> list[int] | None:
    """Return the instants of one request: the first of each mark behind the one before. None where one is missing.

    Who reads may be faster than who returns from a write: then the write was over when the reader went on.
    """
    found, behind = [begun], begun
    for step in STEPS[:-1]:
        noted = marks[step.mark]
        at = bisect_left(noted, behind)
        if at == len(noted) or (noted[at] > ended and step.mark not in WRITES):
            return None
        found.append(noted[at])
        behind = behind if step.mark in WRITES else noted[at]
    return [*accumulate(reversed([*found, ended]), min)][::-1]


def micros(requests: Sequence[Sequence[int]]) -> list[float]:
    """Return the median of each step, in µs."""
    return [median(column) / 1000 for column in zip(*(_differences(one) for one in requests), strict=True)]


def beyond_the_call(request: Sequence[int]) -> int:
    """Return the nanoseconds of a request, but for those of the device's call."""
    call = [step.mark for step in STEPS].index(CALL)
    return request[-1] - request[0] - _differences(request)[call]


def _differences(request: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(request)]
