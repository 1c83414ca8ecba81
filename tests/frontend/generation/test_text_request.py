"""A refusal has a status; a stream that fails never ends cleanly; a client that leaves ends its jobs."""

from __future__ import annotations

import logging
from unittest.mock import patch

import pytest

from msx_core.generation.wire import decode
from msx_core.service_errors import HandlerFailed, Overloaded, ServiceUnavailable, WorkerDied
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.turns import AT_ONCE
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import GenerateDelta, GenerateRequest
from tests.frontend.generation.speaker import Speaker, events, say, say_so_far, words
from tests.frontend.keys.some import some_key
from tests.loops import run
from tests.phrases import worker_died
from tests.retry import told_wait

STREAMED = {"prompt": "x", "stream": True}


@pytest.mark.parametrize("stream", [True, False])
def test_what_fails_before_its_first_token_has_a_status(stream: bool) -> None:
    async def test() -> None:
        speaker = Speaker([[HandlerFailed(429, "no room")]])
        exchange = await speaker.ask("/v1/completions", {"prompt": "x", "stream": stream})
        assert exchange.status == 429
        assert told_wait(exchange.headers) <= 2
        assert exchange.headers["content-type"] == "application/json"
        assert exchange.json["error"]["message"] == "no room"
        assert speaker.log.lines == [("POST /v1/completions", 429)]

    run(test())


def test_a_full_queue() -> None:
    async def test() -> None:
        speaker = Speaker(refusal=Overloaded("no worker (the queue is full)", plain="The queue is full.", wait=10))
        openai = await speaker.ask("/v1/completions", STREAMED)
        assert (openai.status, openai.json["error"]["message"]) == (429, "The queue is full.")
        assert 10 <= told_wait(openai.headers) <= 20
        assert (await speaker.ask("/generate", {"inputs": "x"})).json["error_type"] == "overloaded"
        kserve = await speaker.ask("/v2/models/m/generate", {"text_input": "x"})
        assert (kserve.status, kserve.json) == (503, {"error": "The queue is full."})
        assert 10 <= told_wait(kserve.headers) <= 20
        speaker.refusal = ServiceUnavailable("no worker")
        assert (await speaker.ask("/v1/completions", STREAMED)).status == 503

    run(test())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/completions", STREAMED, {"message": worker_died("Gone.")}),
        ("/generate_stream", {"inputs": "x"}, worker_died("Gone.")),
        ("/v2/models/m/generate_stream", {"text_input": "x"}, worker_died("Gone.")),
    ],
)
def test_what_fails_after_it_is_an_event_and_a_broken_transfer(
    path: str, body: object, message: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        speaker = Speaker([[*words("a")[:1], WorkerDied("Gone.")]])
        exchange = speaker.begin(path, body)
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert f"a stream was cut: {worker_died('Gone.')}" in caplog.text
        assert not exchange.ended
        error = events(exchange)[-1]["error"]
        assert error == message or (isinstance(message, dict) and message.items() <= error.items())
        assert speaker.log.lines[0][1] == WorkerDied("").status

    run(test())


def test_a_reply_without_an_end_is_not_a_reply(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")[:1]])
        whole = await speaker.ask("/v1/completions", {"prompt": "x"})
        assert (whole.status, whole.json["error"]["code"]) == (500, "incomplete_generation")
        with pytest.raises(StreamBroken):
            await speaker.ask("/v1/completions", STREAMED)
        assert "ended its reply without a finish_reason" in caplog.text

    run(test())


@pytest.mark.parametrize("answer", [b"\xc1", GenerateDelta(index=1, text="a")])
def test_a_handler_that_says_something_else(answer: bytes | GenerateDelta) -> None:
    async def test() -> None:
        exchange = await Speaker([[answer]]).ask("/v1/completions", {"prompt": "x"})
        assert exchange.status == 500
        assert 'The handler of model "m" sent what is no GenerateDelta: ' in exchange.json["error"]["message"]

    run(test())


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_all_its_jobs(stream: bool) -> None:
    async def test() -> None:
        speaker = Speaker()
        exchange = speaker.begin("/v1/completions", {"prompt": ["x", "y"], "stream": stream})
        jobs = [await speaker.next_job(0), await speaker.next_job(1)]
        say_so_far(jobs[0], *words("a")[:1])
        if stream:
            await exchange.until_chunks(1)
        exchange.leave()
        if stream:
            with pytest.raises(StreamBroken):
                await exchange.finish()
        else:
            await exchange.finish()
        assert [job.cancelled for job in jobs] == [True, True]
        assert (exchange.ended, speaker.log.lines[0][1]) == (False, 499)

    run(test())


def test_nothing_is_begun_for_a_client_that_has_left() -> None:
    async def test() -> None:
        speaker = Speaker()
        exchange = speaker.begin("/v1/completions", {"prompt": ["x"] * (AT_ONCE + 8)})
        await speaker.next_job(AT_ONCE - 1)
        exchange.leave()
        await exchange.finish()
        assert len(speaker.jobs) == AT_ONCE
        assert all(job.cancelled for job in speaker.jobs)

    run(test())


@pytest.mark.parametrize(("n", "jobs"), [(1, AT_ONCE), (AT_ONCE // 2, 2), (128, 1)])
def test_a_request_generates_so_many_texts_at_a_time(n: int, jobs: int) -> None:
    async def test() -> None:
        speaker = Speaker()
        exchange = speaker.begin("/v1/completions", {"prompt": ["x"] * 16 * jobs, "n": n})
        await speaker.next_job(jobs - 1)
        assert len(speaker.jobs) == jobs
        owners = {job.owner for job in speaker.jobs}
        assert len(owners) == 1
        assert {decode(job.fields[0].data, GenerateRequest).owner for job in speaker.jobs} == owners
        exchange.leave()
        await exchange.finish()

    run(test())


def test_requests_of_one_key_have_an_owner_each() -> None:
    async def test() -> None:
        keys = {f"Bearer {name}": some_key(name, text=name) for name in ("one", "two")}
        speaker = Speaker([words("a")], check_token=lambda given: keys[given or ""])
        for bearer in ("Bearer one", "Bearer one", "Bearer two"):
            await speaker.ask("/v1/completions", {"prompt": "x"}, authorization=bearer)
        first, second, third = (job.owner for job in speaker.jobs)
        assert first is not None
        assert second is not None
        assert third is not None
        assert first.key == second.key != third.key
        assert len({first.request, second.request, third.request}) == 3
        assert keys["Bearer one"].digest.hex().startswith(first.key)

    run(test())


def test_one_prompt_that_fails_ends_the_others() -> None:
    async def test() -> None:
        speaker = Speaker()
        exchange = speaker.begin("/v1/completions", {"prompt": ["x", "y"]})
        first, second = await speaker.next_job(0), await speaker.next_job(1)
        say(second, HandlerFailed(400, "prompt: too long"))
        assert (await exchange.finish()).status == 400
        assert first.cancelled

    run(test())


def test_jobs_of_one_call_have_names_of_their_own() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        await speaker.ask("/v1/completions", {"prompt": ["x", "y"]}, x_request_id="r", x_tenant="t")
        assert [job.id for job in speaker.jobs] == ["r", "r-1"]
        assert ("x-tenant", "t") in speaker.jobs[1].headers
        assert speaker.jobs[0].fields[0].content_type == "application/msgpack"

    run(test())


def test_a_body_that_is_too_large() -> None:
    async def test() -> None:
        exchange = await Speaker().ask("/v1/completions", {"prompt": "x" * 20_000})
        assert (exchange.status, exchange.json["error"]["code"]) == (413, "request_too_large")

    run(test())


@pytest.mark.parametrize("body", [b"{", b"", b"[]", b'{"prompt": "\xff"}', b'{"prompt": ' + b"[" * 5000])
def test_a_body_that_is_not_a_request(body: bytes) -> None:
    async def test() -> None:
        exchange = await Speaker().ask("/v1/completions", body)
        assert (exchange.status, exchange.json["error"]["type"]) == (400, "invalid_request_error")

    run(test())


def test_a_bug_of_the_server_is_not_a_mistake_of_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        with patch.object(Directory, "find", side_effect=KeyError("oh")), caplog.at_level(logging.ERROR):
            exchange = await Speaker().ask("/v1/completions", {"prompt": "x"})
        assert exchange.status == 500
        assert exchange.json["error"]["message"] == "Internal error: KeyError: 'oh'"
        assert "a bug of the server" in caplog.text

    run(test())


def test_a_bug_in_a_stream_is_not_a_clean_end(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        speaker = Speaker()
        exchange = speaker.begin("/v1/completions", {"prompt": ["x", "y"], "stream": True})
        first, second = await speaker.next_job(0), await speaker.next_job(1)
        say_so_far(second, *words("a")[:1])
        await exchange.until_chunks(1)
        with patch("msx_frontend.apis.openai.completions.FINISH", {}), caplog.at_level(logging.ERROR):
            say_so_far(second, *words("a")[1:])
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert "a bug of the server" in caplog.text
        assert first.cancelled

    run(test())
