"""Which requests are sampled, and the spans that are made of what a job knows at its end."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

from msx_frontend.job import Job, KeptHeaders
from msx_frontend.tracing.request_spans import SAMPLED_KEPT, RequestSpans
from msx_sdk._internal.tracing.span import Span
from msx_sdk._internal.tracing.trace_context import parsed

PARENT = f"00-{'a' * 32}-{'b' * 16}-01"


class Kept:
    labels = ("m", "1.0")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.exemplars: list[tuple[float, str]] = []

    def offer(self, span: Span) -> None:
        self.spans.append(span)

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
        await asyncio.sleep(0)

    asyncio.run(test())
    return [span.name for span in kept.spans]


def test_chance_decides_where_the_client_has_not() -> None:
    for chance, sampled in ((0.4, True), (0.6, False)):
        kept, job = Kept(), job_of()
        spans = made(kept, chance=chance)
        spans.begin(job)
        assert bool(ended(spans, kept, job)) is sampled
        assert bool(job.headers) is sampled
        assert bool(spans.trace_of("r")) is sampled


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
    assert (whole.context.span_id, whole.parent) == (own.span_id, parsed(PARENT, "x=y"))
    assert kept.exemplars == [(1.0, "a" * 32)]
    unwanted = job_of(("traceparent", PARENT[:-1] + "0"))
    made(kept, ratio=1.0).begin(unwanted)
    assert unwanted.headers == [("traceparent", PARENT[:-1] + "0")]


def test_a_job_that_never_ran_was_only_queued() -> None:
    kept, job = Kept(), job_of()
    spans = made(kept)
    spans.begin(job)
    assert ended(spans, kept, job, 503) == ["predict m", "queue"]
    assert kept.spans[0].error == ""
    assert ended(spans, kept, job, 503) == ["predict m", "queue"], "it is told once"


def test_the_phases_of_a_text() -> None:
    kept, job = Kept(), job_of(kind="generate")
    spans = made(kept)
    spans.begin(job)
    job.started, job.first_chunk = job.enqueued + 0.25, job.enqueued + 0.5
    assert ended(spans, kept, job) == ["generate m", "queue", "prefill", "decode", "batch"]
    whole, queue, prefill, decode, batch = kept.spans
    assert [name for name, _ in whole.events] == ["first token"]
    assert [round(span.end - span.start, 3) for span in (whole, queue, prefill, decode)] == [1.0, 0.25, 0.25, 0.5]
    assert prefill.links == (batch.context,)
    assert batch.links == (whole.context,)


def test_no_more_is_remembered_than_is_useful() -> None:
    spans = made(Kept())
    for number in range(SAMPLED_KEPT + 1):
        spans.begin(job_of(id=str(number)))
    assert spans.trace_of("0") == ""
    assert spans.trace_of("1") != ""
