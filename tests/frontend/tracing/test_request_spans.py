"""Which requests are sampled, and the spans that are made of what a job knows at its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import MagicMock

import pytest

from msx_core.tracing.trace_context import parsed
from msx_frontend.generation.text_request import TextJob
from msx_frontend.job import Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.tracing import request_spans
from msx_frontend.tracing.request_spans import SAMPLED_KEPT, WRITTEN_AT, RequestSpans
from msx_sdk.generation import GENERATE

PARENT = f"00-{'a' * 32}-{'b' * 16}-01"


class Kept:
    labels = ("m", "1.0")

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.exemplars: list[tuple[float, str]] = []

    def offer_all(self, spans: list[bytes]) -> None:
        self.spans += map(json.loads, spans)

    def exemplify(self, seconds: float, trace: str) -> None:
        self.exemplars.append((seconds, trace))


def made(kept: Kept, ratio: float = 0.5, chance: float = 0.4) -> RequestSpans:
    return RequestSpans(kept, ratio, lambda: chance)


def job_of(*headers: tuple[str, str], kind: str = "predict", id: str = "r") -> Job:
    sink: Any = MagicMock(spec=["start"])
    return Job(id, "m", "1.0", [], KeptHeaders(headers), sink, kind=kind)


def ended(spans: RequestSpans, kept: Kept, job: Job, status: int = 200) -> list[str]:
    """The names of the spans that were told."""

    async def test() -> None:
        job.status = status
        spans.ended([job], job.enqueued + 1.0, kept)
        spans.flush()

    asyncio.run(test())
    return [span["name"] for span in kept.spans]


def seconds(span: dict[str, Any]) -> float:
    return round((int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9, 3)


def place(span: dict[str, Any]) -> dict[str, str]:
    """As a link has it."""
    return {"traceId": span["traceId"], "spanId": span["spanId"]}


def test_chance_decides_where_the_client_has_not() -> None:
    for chance, sampled in ((0.4, True), (0.6, False)):
        kept, job = Kept(), job_of()
        spans = made(kept, chance=chance)
        spans.begin(job)
        assert bool(ended(spans, kept, job)) is sampled
        assert bool(job.headers) is sampled
        assert bool(spans.traces_of(["r"])) is sampled


def test_who_come_together_are_sampled_together() -> None:
    kept, chances = Kept(), iter([0.4, 0.6, 0.4])
    spans = RequestSpans(kept, 0.5, lambda: next(chances))
    sampled = []
    for number, came in enumerate((1.0, 1.0004, 1.0009, 1.0012, 1.002, 1.5)):
        job = job_of(id=str(number))
        job.enqueued = came
        spans.begin(job)
        sampled.append(bool(job.headers))
    assert sampled == [True, True, True, False, False, True]


def test_the_client_has_decided() -> None:
    kept, job = Kept(), job_of(("Traceparent", PARENT), ("tracestate", "x=y"), ("a", "b"))
    spans = made(kept, ratio=0.0)
    spans.begin(job)
    told = dict(job.headers)
    assert told.keys() == {"a", "tracestate", "traceparent"}
    own = parsed(told["traceparent"])
    assert own is not None
    assert told["traceparent"].startswith(f"00-{'a' * 32}-")
    ended(spans, kept, job)
    whole = kept.spans[0]
    assert (whole["spanId"], whole["parentSpanId"], whole["traceState"]) == (own.span, "b" * 16, "x=y")
    assert kept.exemplars == [(1.0, "a" * 32)]
    unwanted = job_of(("traceparent", PARENT[:-1] + "0"))
    made(kept, ratio=1.0).begin(unwanted)
    assert unwanted.headers == [("traceparent", PARENT[:-1] + "0")]


@pytest.mark.parametrize("headers", [(), (("traceparent", PARENT),)])
def test_the_later_prompts_of_a_request_are_below_its_first(headers: tuple[tuple[str, str], ...]) -> None:
    """Whoever has decided: the client's headers are those of each."""
    spans, sink = made(Kept()), MagicMock(spec=["start"])
    first, later = (TextJob(id, "m", "1.0", [], KeptHeaders(headers), sink, kind=GENERATE) for id in ("r", "r-1"))
    first.first, later.first = None, first
    spans.begin(first)
    spans.begin(later)
    own, of_later = (parsed(dict(job.headers)["traceparent"]) for job in (first, later))
    assert own is not None
    assert of_later is not None
    assert (own.trace, own.span) != (of_later.trace, of_later.span)
    traced: Any = later.traced
    assert (traced[1].trace, traced[1].span) == (own.trace, own.span)


def test_a_job_that_never_ran_was_only_queued() -> None:
    kept, job = Kept(), job_of()
    spans = made(kept)
    spans.begin(job)
    assert ended(spans, kept, job, 503) == ["predict m", "queue"]
    assert kept.spans[0]["status"] == {"code": 2, "message": ""}
    assert ended(spans, kept, job, 503) == ["predict m", "queue"], "it is told once"


def test_the_phases_of_a_text() -> None:
    kept, job = Kept(), job_of(kind="generate")
    spans = made(kept)
    spans.begin(job)
    job.started, job.first_chunk = job.enqueued + 0.25, job.enqueued + 0.5
    assert ended(spans, kept, job) == ["generate m", "queue", "prefill", "decode", "batch"]
    whole, queue, prefill, decode, batch = kept.spans
    assert [event["name"] for event in whole["events"]] == ["first token"]
    assert [seconds(span) for span in (whole, queue, prefill, decode)] == [1.0, 0.25, 0.25, 0.5]
    assert prefill["links"] == [place(batch)]
    assert batch["links"] == [place(whole)]


def test_no_more_is_remembered_than_is_useful() -> None:
    spans = made(Kept())
    for number in range(SAMPLED_KEPT + 1):
        spans.begin(job_of(id=str(number)))
    assert spans.traces_of(["0", "1"]).keys() == {"1"}


def test_spans_are_written_for_many_at_once() -> None:
    kept = Kept()
    spans = made(kept)
    told: list[int] = []

    async def test() -> None:
        for number in range(WRITTEN_AT):
            job = job_of(id=str(number))
            spans.begin(job)
            job.status = 200
            spans.ended([job], job.enqueued + 1.0, kept)
            told.append(len(kept.spans))
        await asyncio.sleep(0)

    asyncio.run(test())
    assert not any(told), "not while requests end"
    assert len(kept.spans) == 2 * WRITTEN_AT, "and no later than in the next turn"


def test_few_spans_are_written_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_spans, "WRITTEN_AFTER", 0.001)
    kept, job = Kept(), job_of()
    spans = made(kept)
    spans.begin(job)

    async def test() -> None:
        spans.ended([job], job.enqueued + 1.0, kept)
        while not kept.spans:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(test(), 120))


def test_texts_of_clients_are_escaped() -> None:
    kept, job = Kept(), job_of(id='a"\udcff%d')
    spans = made(kept)
    spans.begin(job)
    ended(spans, kept, job)
    [id] = [one["value"] for one in kept.spans[0]["attributes"] if one["key"] == "msx.request.id"]
    assert id == {"stringValue": 'a"?%d'}


def test_a_job_that_was_refused_at_the_door_has_no_spans() -> None:
    kept = Kept()
    assert ended(made(kept), kept, job_of(), 503) == []
