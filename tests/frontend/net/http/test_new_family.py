"""Effort of adding an API: a family with a route and a job route, served by a real listener both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import msgspec
import pytest

from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.job import Field, Job
from msx_net.http.family import Failure, Family, JobRoute, JobTemplate, Names, Reply, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.job_reply import TranslatedReply
from msx_net.http.request import Request
from msx_net.keys import ClientKey
from msx_net.listening.listener import Listener
from msx_net.page_guard import PageGuard
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of
from tests.net.listening.test_listener import ANY_PORT

# -- the family --


def shouting(submit: Callable[[Job], None]) -> Family:
    return Family(
        "shouting",
        (
            Route("GET", "/shout/words", words, summary="What it can shout"),
            Route("POST", "/shout/{model}", JobRoute(lambda head, names: Template(head, names, submit))),
        ),
        lambda error: Failure(error.status, msgspec.json.encode({"oh no": error.message})),
        owns=("shout",),
    )


async def words(request: Request) -> Reply:
    return Reply(b'["hey"]')


class Template:
    """Template of the jobs of one head: a word becomes a field."""

    def __init__(self, head: Head, names: Names, submit: Callable[[Job], None]) -> None:
        self._model, self._headers, self._submit = names["model"], head.headers(), submit
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        if not body:
            raise BadRequest("There is nothing to shout.")
        job = Job(id, self._model, None, [Field("word", None, body)], self._headers, Loud(id, sink, 100))
        sink.job = job
        self._submit(job)


_TEMPLATE: Callable[..., JobTemplate] = Template


class Loud(TranslatedReply):
    __slots__ = ()

    def translate(self, status: int, phrase: str, headers: list[tuple[str, str]], chunks: list[bytes]) -> None:
        self.sink.answer(201, phrase, [("content-type", "text/loud")], b"".join(chunks).upper() + b"!")


# -- what it is worth --


def echo(job: Job) -> None:
    """A registry whose worker says all at once, in pieces, or not at all."""
    loop, word = asyncio.get_running_loop(), job.fields[0].data
    if word == b"bug":
        raise ZeroDivisionError("by zero")
    if word == b"pieces":
        job.sink.start(200, "", [])
        loop.call_soon(job.sink.chunk, b"pie")
        loop.call_soon(job.sink.chunk, b"ces")
        loop.call_soon(job.finish, 200)
    elif word == b"fails":
        loop.call_soon(job.fail, ServiceError("It failed."))
    else:
        loop.call_soon(job.answer, 200, "", [], word)


REQUESTS: dict[str, tuple[str, str, bytes, int, bytes]] = {
    "route": ("GET", "/shout/words", b"", 200, b'["hey"]'),
    "head": ("HEAD", "/shout/words", b"", 200, b""),
    "job": ("POST", "/shout/m", b"hello", 201, b"HELLO!"),
    "job in pieces": ("POST", "/shout/m", b"pieces", 201, b"PIECES!"),
    "job too long in pieces": ("POST", "/shout/m", b"x" * 101, 201, b"X" * 101 + b"!"),
    "refused": ("POST", "/shout/m", b"", 400, b'{"oh no":"There is nothing to shout."}'),
    "failed": ("POST", "/shout/m", b"fails", 500, b'{"oh no":"It failed."}'),
    "bug": ("POST", "/shout/m", b"bug", 500, b'{"oh no":"Internal error: ZeroDivisionError: by zero"}'),
    "too large": ("POST", "/shout/m", b"x" * 1001, 413, b"The request is larger than max_request_size (1000 bytes)."),
    "no path": ("POST", "/shout/m/x", b"", 404, b"Requested resource is not found"),
    "no method": ("DELETE", "/shout/m", b"", 405, b"Requested method is not allowed"),
    "preflight": ("OPTIONS", "/shout/m", b"", 204, b""),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_it_is_served(name: str) -> None:
    method, path, body, status, expected = REQUESTS[name]

    async def asked() -> tuple[int, list[tuple[str, str]], bytes]:
        app = exchange_of(shouting(echo), log=FakeAccessLog())
        listener = Listener("inference", ANY_PORT, app, direct=app.direct())
        await listener.start()
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                reply = await client.request(method, f"{listener.address}{path}", content=body)
        finally:
            await listener.stop(1)
        own = {"date", "x-request-id"}
        return reply.status_code, sorted(one for one in reply.headers.items() if one[0] not in own), reply.content

    async def test() -> None:
        one = await asked()
        assert one[0] == status
        assert expected in one[2]

    run(test())


def test_a_job_of_management_is_judged_where_no_keys_are() -> None:
    """Its connection would answer it by itself, and does so with keys."""
    family = shouting(echo)._replace(listener="management")
    guard = PageGuard(lambda origin: False, ())

    async def test() -> None:
        app = exchange_of(family, log=FakeAccessLog(), guard=guard)
        listener = Listener("management", ANY_PORT, app, direct=app.direct())
        await listener.start()
        try:
            async with httpx.AsyncClient(base_url=str(listener.address), trust_env=False) as client:
                for headers, status in (({}, 201), ({"origin": "http://evil.example"}, 403), ({"host": "evil"}, 403)):
                    reply = await client.post("/shout/m", content=b"hello", headers=headers)
                    assert reply.status_code == status, headers
                    assert status == 201 or "oh no" in reply.json()
        finally:
            await listener.stop(1)

    run(test())
