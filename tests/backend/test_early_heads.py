"""The heads of streams whose handlers take long for the first chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from msx_backend.early_heads import EarlyHeads
from msx_core.batch import Batch
from msx_protocol import Chunk, Failed
from tests.backend.harness import Worker, serving
from tests.core.recording import Sink, requests

EVENTS = ("content-type", "text/event-stream")
MARKED = """
import asyncio, pathlib, time
from msx_sdk import PredictionError

def wait(path):
    while not pathlib.Path(path).exists():
        time.sleep(0.001)

def marks(data, context):
    context.set_response_content_type(0, "text/event-stream")
    wait(data[0]["body"])
    return ["data: 1\\n\\n"]

def generates(data, context):
    context.set_response_header(0, "x-own", "1")
    wait(data[0]["body"])
    yield ["1"]

async def agenerates(data, context):
    context.set_response_header(0, "x-own", "1")
    await asyncio.to_thread(wait, data[0]["body"])
    yield ["1"]

async def amarks(data, context):
    context.set_response_header(0, "Content-Type", "text/event-stream")
    await asyncio.to_thread(wait, data[0]["body"])
    return ["data: 1\\n\\n"]

def fails(data, context):
    context.set_response_content_type(0, "text/event-stream")
    wait(data[0]["body"])
    raise PredictionError(507, "no memory")

def continuous(data, context):
    for idx, row in enumerate(data):
        if row:
            context.set_response_content_type(idx, "text/event-stream")
            context.cache[context.get_request_id(idx)] = row["body"]
    opened = [pathlib.Path(context.cache[id]).exists() for id in context.request_ids.values()]
    context.stopping_criteria = [lambda value, over=over: over for over in opened]
    time.sleep(0.001)
    return ["data: 1\\n\\n" if over else None for over in opened]

def plain(data, context):
    wait(data[0]["body"])
    return ["1"]
"""


class Heads:
    """Two requests of a batch, and the clock."""

    def __init__(self, *, raw: bool = False, seconds: float = 15.0) -> None:
        self.now, self.sink = 0.0, Sink()
        self.batch = Batch(requests(b"", b""), self.sink)
        self.early = EarlyHeads(seconds, raw=raw, clock=lambda: self.now)

    def tick(self, now: float) -> bool:
        self.now = now
        return self.early.tick()


def test_a_batch_that_is_over_is_not_kept() -> None:
    """Its requests may have megabytes."""
    heads = EarlyHeads(15.0, raw=False)
    batch = Batch(requests(b""), Sink())
    heads.expect(batch, 0, events=True)
    over = ref(batch)
    del batch
    assert over() is None
    assert not heads.tick()


def test_the_head_of_events_leaves_when_it_is_due() -> None:
    heads = Heads()
    heads.batch.head(0).set_header(*EVENTS)
    heads.early.expect(heads.batch, 0, events=True)
    assert not heads.tick(14.0)
    assert heads.tick(15.0)
    assert dict(heads.sink.events) == {"r0": [b""]}
    assert heads.sink.heads["r0"][0].headers == [EVENTS]
    assert not heads.tick(30.0)
    heads.batch.send(["data: 1\n\n", None])
    assert len(heads.sink.heads["r0"]) == 1


@pytest.mark.parametrize("raw", [False, True])
def test_raw_heads_leave_if_that_is_wanted(raw: bool) -> None:
    heads = Heads(raw=raw)
    heads.early.expect(heads.batch, 1, events=False)
    assert heads.tick(15.0) is raw
    assert dict(heads.sink.events) == ({"r1": [b""]} if raw else {})


def test_a_reply_that_has_begun_or_ended_is_forgotten() -> None:
    heads = Heads()
    for idx in range(2):
        heads.early.expect(heads.batch, idx, events=True)
    heads.batch.send(["data: 1\n\n", None])
    heads.batch.requests[1].cancelled = True
    assert not heads.tick(1.0)
    assert heads.early._expected == []


def test_off() -> None:
    heads = Heads(raw=True, seconds=0.0)
    heads.early.expect(heads.batch, 0, events=True)
    assert not heads.tick(1000.0)


def test_a_head_that_http_does_not_allow_does_not_leave() -> None:
    heads = Heads()
    heads.batch.head(0).set_header("content-type", "text/event-stream")
    heads.batch.head(0).set_header("a b", "1")
    heads.early.expect(heads.batch, 0, events=True)
    heads.tick(15.0)
    assert dict(heads.sink.events) == {}


def until_head(worker: Worker) -> Chunk:
    """Pings as the server does; the head comes with a chunk that is empty."""
    import select

    while not select.select([worker.data], [], [], 0.01)[0]:
        worker.ping()
    message, body = worker.receive()
    assert (type(message), message.last, message.status, body) == (Chunk, False, 200, b"")
    return message  # type: ignore[no-any-return]


def asked(worker: Worker, gate: Path) -> None:
    worker.predict(str(gate))


@pytest.mark.parametrize("kind", ["marks", "amarks"])
def test_a_handler_that_marks_its_reply(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, MARKED, handler=f"h.py:{kind}", stream_heartbeat=0.01) as worker:
        asked(worker, gate := tmp_path / "gate")
        assert [(name.lower(), value) for name, value in until_head(worker).headers] == [EVENTS]
        gate.touch()
        assert worker.receive_all(1) == {1: [b"data: 1\n\n", True]}


def test_a_handler_that_fails_behind_its_head(tmp_path: Path) -> None:
    with serving(tmp_path, MARKED, handler="h.py:fails", stream_heartbeat=0.01) as worker:
        asked(worker, gate := tmp_path / "gate")
        until_head(worker)
        gate.touch()
        ((_, (failed,)),) = worker.receive_all(1).items()
        assert isinstance(failed, Failed)
        assert (failed.status, failed.message) == (507, "no memory")


def test_a_continuous_handler_that_says_nothing_in_its_first_calls(tmp_path: Path) -> None:
    options: dict[str, Any] = {"handler": "h.py:continuous", "continuous": True, "stream_heartbeat": 0.01}
    with serving(tmp_path, MARKED, **options) as worker:
        asked(worker, gate := tmp_path / "gate")
        assert until_head(worker).headers == [EVENTS]
        gate.touch()
        assert worker.receive_all(1) == {1: [b"data: 1\n\n", True]}


@pytest.mark.parametrize("kind", ["generates", "agenerates"])
def test_a_stream_of_raw_chunks(tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = {"stream_heartbeat": 0.01, "stream_early_head": True}
    with serving(tmp_path, MARKED, handler=f"h.py:{kind}", **options) as worker:
        asked(worker, gate := tmp_path / "gate")
        assert until_head(worker).headers == [("x-own", "1")]
        gate.touch()
        assert worker.receive_all(1) == {1: [b"1", b"", True]}


@pytest.mark.parametrize(("kind", "raw"), [("generates", False), ("plain", True)])
def test_what_is_no_stream_or_raw_keeps_its_head(tmp_path: Path, kind: str, raw: bool) -> None:
    with serving(tmp_path, MARKED, handler=f"h.py:{kind}", stream_heartbeat=0.01, stream_early_head=raw) as worker:
        asked(worker, gate := tmp_path / "gate")
        for _ in range(3):
            worker.ping()
        gate.touch()
        message, body = worker.receive()
        assert (message.status, body) == (200, b"1")
