"""Streams of text APIs that wait: for a worker, for the load of their model, for the first token, for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import Overloaded, ServiceUnavailable, WorkerDied
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import Speaker, events, say, say_so_far, words
from tests.frontend.harness import until
from tests.loops import run
from tests.net.http.client import Exchange
from tests.net.http.direct_client import begin_direct
from tests.net.http.v2.client import begin_http2
from tests.net.silence import COMMENT, Silence
from tests.phrases import worker_died

WAYS: dict[str, Callable[..., Exchange]] = {"http/1.1": begin_direct, "http/2": begin_http2}
CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
STREAMS: dict[str, Any] = {
    "/v1/completions": {"prompt": "x", "stream": True},
    "/v1/chat/completions": CHAT,
    "/v1/responses": {"model": "m", "input": "x", "stream": True},
    "/v1/messages": {**CHAT, "max_tokens": 4},
    "/generate_stream": {"inputs": "x"},
    "/": {"inputs": "x", "stream": True},
    "/v2/models/m/generate_stream": {"text_input": "x"},
    "/v2/models/m/generate": {"text_input": "x", "parameters": {"stream": True}},
}
NAMED = ("/v1/responses", "/v1/messages")
"""Streams whose events have names."""
ERRORS = {
    "/v1/completions": {
        "error": {
            "message": worker_died("Gone."),
            "type": "server_error",
            "param": None,
            "code": "worker_died",
        }
    },
    "/generate_stream": {"error": worker_died("Gone."), "error_type": "generation"},
    "/v2/models/m/generate_stream": {"error": worker_died("Gone.")},
}

streams = pytest.mark.parametrize("path", STREAMS)
ways = pytest.mark.parametrize("way", WAYS)


class Asking:
    """A speaker, and one request to it."""

    def __init__(self, path: str, way: str, body: Any = None, **options: Any) -> None:
        self.silence = Silence()
        self.speaker = Speaker(heartbeats=self.silence, **options)
        for version in self.speaker.versions.values():
            version.workers.on_demand = version.schema.capabilities is None
        data = msgspec.json.encode(STREAMS[path] if body is None else body)
        length = {"content_length": str(len(data))}
        self.exchange = WAYS[way](self.speaker.app, "POST", path, data, **length)

    async def ends(self) -> None:
        """Whole; nothing is looked at any more."""
        await self.exchange.finish()
        assert self.silence.count == 0

    async def breaks(self) -> Any:
        """The last event of a stream that is not whole."""
        with pytest.raises(StreamBroken):
            await self.exchange.finish()
        assert self.silence.count == 0
        return events(self.exchange)[-1]


@ways
@streams
def test_the_head_and_a_comment_come_before_the_first_token(path: str, way: str) -> None:
    async def test() -> None:
        asking = Asking(path, way)
        job = await asking.speaker.next_job()
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        assert asking.exchange.status == 200
        assert asking.exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert asking.exchange.body == COMMENT
        asking.silence.passes()
        await asking.exchange.until_chunks(2)
        say(job, *words("a"))
        await asking.ends()
        assert asking.exchange.body.startswith(2 * COMMENT + (b"event: " if path in NAMED else b"data: "))
        assert asking.exchange.body.count(COMMENT) == 2
        assert len(events(asking.exchange)) > 1

    run(test())


@ways
def test_comments_come_between_tokens(way: str) -> None:
    async def test() -> None:
        asking = Asking("/v1/completions", way)
        job = await asking.speaker.next_job()
        say_so_far(job, *words("a", "b")[:1])
        await asking.exchange.until_chunks(1)
        asking.silence.passes()
        await asking.exchange.until_chunks(2)
        assert asking.exchange.chunks[1] == COMMENT
        say(job, *words("b"))
        await asking.ends()
        assert [event["choices"][0]["text"] for event in events(asking.exchange)[:2]] == ["a", "b"]

    run(test())


@ways
@pytest.mark.parametrize("path", ERRORS)
def test_what_fails_behind_the_head_is_told_in_the_stream(path: str, way: str) -> None:
    async def test() -> None:
        asking = Asking(path, way)
        job = await asking.speaker.next_job()
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        say_so_far(job, WorkerDied("Gone."))
        assert await asking.breaks() == ERRORS[path]

    run(test())


@ways
@streams
def test_what_fails_before_the_silence_has_its_status(path: str, way: str) -> None:
    async def test() -> None:
        asking = Asking(path, way)
        say_so_far(await asking.speaker.next_job(), Overloaded("No room."))
        await asking.ends()
        assert asking.exchange.status in (429, 503, 529)
        asking.silence.passes()

    run(test())


@ways
def test_a_request_that_waits_for_its_model_to_load(way: str) -> None:
    async def test() -> None:
        asking = Asking("/v1/chat/completions", way, models={"m": None})
        version = asking.speaker.versions["m"]
        await until(lambda: len(version.first_load) == 1)
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        version.schema.capabilities = Capabilities(generate=True, chat=True)
        version.first_load.loaded()
        say(await asking.speaker.next_job(), *words("a"))
        await asking.ends()
        assert asking.exchange.body.startswith(COMMENT + b"data: ")

    run(test())


@ways
def test_a_load_that_fails_behind_the_head_is_told_in_the_stream(way: str) -> None:
    async def test() -> None:
        asking = Asking("/v1/chat/completions", way, models={"m": None})
        version = asking.speaker.versions["m"]
        await until(lambda: len(version.first_load) == 1)
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        version.first_load.failed(ServiceUnavailable("no weights"))
        assert (await asking.breaks())["error"]["message"] == "no weights"

    run(test())


@ways
def test_a_whole_answer_says_nothing_before_it_is_there(way: str) -> None:
    async def test() -> None:
        asking = Asking("/v1/completions", way, body={"prompt": "x"})
        job = await asking.speaker.next_job()
        assert asking.silence.count == 0
        say(job, *words("a"))
        await asking.ends()
        assert asking.exchange.json["object"] == "text_completion"

    run(test())


@ways
def test_a_client_that_leaves_is_not_looked_at_any_more(way: str) -> None:
    async def test() -> None:
        asking = Asking("/v1/completions", way)
        job = await asking.speaker.next_job()
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        asking.exchange.leave()
        await until(lambda: job.cancelled)
        await until(lambda: asking.silence.count == 0)

    run(test())


def test_a_refused_request_is_not_looked_at() -> None:
    async def test() -> None:
        asking = Asking("/v1/completions", "http/1.1", body={"prompt": "x", "stream": True, "n": -1})
        await asking.ends()
        assert asking.exchange.status == 400

    run(test())


def test_headers_of_a_stream_are_in_its_early_head() -> None:
    async def test() -> None:
        asking = Asking("/generate_stream", "http/1.1")
        await asking.speaker.next_job()
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        assert asking.exchange.headers["x-msx-model"] == "m"
        asking.exchange.leave()

    run(test())
