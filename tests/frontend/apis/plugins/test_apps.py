"""ASGI applications of users below /apps/NAME: what they are given, and how far what they do reaches."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import InvalidKey
from msx_frontend.apis.openapi.family import openapi
from msx_frontend.apis.plugins import app_call
from msx_frontend.apis.plugins.apps import AppLimits, UserApps
from msx_frontend.installed_plugins import Plugin, PluginError
from msx_frontend.keys.entry import read_entry
from msx_frontend.keys.key import Key
from msx_net.http.wire import Message, Receive, Scope, Send, StreamBroken
from msx_net.keys import Kind
from tests.frontend.harness import until
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, begin
from tests.net.http.exchanges import exchange_of
from tests.net.http.v2.client import begin_http2

LIMITS = AppLimits(
    app_startup_timeout=30, app_shutdown_timeout=0.05, default_response_timeout=30, max_request_size=1000
)
OK = {"type": "http.response.start", "status": 200, "headers": []}
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Counts:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def answered(self, app: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.seen.append((app, status))


class Tokens:
    def __init__(self, key: Key) -> None:
        self._key = key

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        if authorization != "Bearer good":
            raise InvalidKey("no")
        return self._key


class Bench:
    """Apps behind a listener's exchange, as they are served."""

    def __init__(self, limits: AppLimits = LIMITS, key: Key | None = None, most_held: int = 1 << 20, **apps: App):
        self.counts, self.log, self.held = Counts(), FakeAccessLog(), HeldBytes(most_held)
        plugins = [Plugin(name, f"{name} (own:app of own 1.0)", app) for name, app in apps.items()]
        self.apps = UserApps(plugins, limits, self.counts, merged=False)
        self.families = self.apps.families()
        tokens = None if key is None else Tokens(key)
        self.exchange = exchange_of(
            *self.families, log=self.log, limit=limits.max_request_size, tokens=tokens, held=self.held
        )
        self.apps.start()

    def begin(self, method: str, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
        return begin(self.exchange, method, target, body, **headers)

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Exchange:
        return await self.begin(method, target, body, **headers).finish()


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """An app without a lifespan."""
    assert scope["type"] == "http"
    await send(OK)
    await send({"type": "http.response.body", "body": repr((scope["root_path"], scope["path"])).encode()})


async def show(request: Request) -> JSONResponse:
    body = (await request.body()).decode()
    return JSONResponse({"path": request.scope["path"], "root": request.scope["root_path"], "body": body})


async def made_at_the_start(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.state.word)


async def stream(request: Request) -> StreamingResponse:
    async def parts() -> Any:
        request.app.state.parts = "begun"
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            request.app.state.parts = "cancelled"

    return StreamingResponse(parts())


def starlette(events: list[str]) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        events.append("start")
        yield {"word": "hello"}
        events.append("end")

    routes = [
        Route("/", show, methods=["GET", "POST", "DELETE"]),
        Route("/sub/{x}", show),
        Route("/word", made_at_the_start),
        Route("/stream", stream),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def asked(app: App, target: str = "/apps/own/", limits: AppLimits = LIMITS, **headers: str) -> Exchange:
    """The reply of an app to one GET."""

    async def test() -> Exchange:
        return await Bench(limits, own=app).begin("GET", target, b"", **headers).finish()

    return run(test())


def test_a_starlette_app() -> None:
    events: list[str] = []

    async def test() -> None:
        bench = Bench(star=starlette(events))
        for target, path in (("/apps/star/", "/apps/star/"), ("/apps/star/sub/a%20b", "/apps/star/sub/a b")):
            reply = await bench.ask("GET", target)
            assert reply.json == {"path": path, "root": "/apps/star", "body": ""}
            assert reply.headers["x-request-id"]
        posted = await bench.ask("POST", "/apps/star/", b"text")
        assert posted.json["body"] == "text"
        assert (await bench.ask("GET", "/apps/star")).headers["location"].endswith("/apps/star/")
        assert (await bench.ask("GET", "/apps/star/word")).body == b"hello"
        assert (await bench.ask("HEAD", "/apps/star/word")).status == 200
        assert (await bench.ask("PUT", "/apps/star/")).status == 405
        assert (await bench.ask("GET", "/apps/star/none")).body == b"Not Found"
        assert (await bench.ask("GET", "/apps/other")).status == 404
        http2 = await begin_http2(bench.exchange, "POST", "/apps/star/", b"text").finish()
        assert http2.json["body"] == "text"
        assert events == ["start"]
        assert ("POST /apps/star/", 200) in bench.log.lines
        assert bench.counts.seen[:3] == [("star", 200)] * 3
        await bench.apps.stop()
        assert events == ["start", "end"]

    run(test())


def test_an_app_without_a_lifespan() -> None:
    assert asked(plain, "/apps/own/a/").body == b"('/apps/own', '/apps/own/a/')"


@pytest.mark.parametrize("version", [begin, begin_http2])
def test_a_stream_whose_client_leaves_is_cancelled(
    version: Callable[..., Exchange], caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        app = starlette([])
        bench = Bench(star=app)
        reply = version(bench.exchange, "GET", "/apps/star/stream")
        await reply.until_chunks(1)
        assert bench.apps.busy
        reply.leave()
        await until(lambda: app.state.parts == "cancelled")
        await until(lambda: not bench.apps.busy)
        assert bench.log.lines == [("GET /apps/star/stream", 499)]
        assert bench.counts.seen == [("star", 499)]

    run(test())
    assert "a bug of the server" not in caplog.text


def replies(*messages: Message, raises: BaseException | None = None) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        for message in messages:
            await send(message)
        if raises is not None:
            raise raises

    return app


PART = {"type": "http.response.body", "body": b"part", "more_body": True}
LAST = {"type": "http.response.body", "body": b"last"}


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (replies(raises=ValueError("no")), "ValueError: no"),
        (replies(raises=SystemExit(3)), "it called sys.exit(3)"),
        (replies(), "its reply was not complete when it returned"),
        (replies(LAST), "http.response.body came where http.response.start was due."),
        (replies({"type": "http.response.push"}), "http.response.push came where"),
        (replies(OK | {"status": 101}), "101 is not a final HTTP status"),
        (replies(OK | {"status": "200"}), "'200' is not a final HTTP status"),
        (replies(OK | {"headers": [(b"a b", b"c")]}), "HTTP does not allow the header b'a b'"),
        (replies(OK | {"headers": [("a", "b")]}), "HTTP does not allow the header 'a'"),
        (replies(OK | {"headers": [(b"content-length", b"1")] * 2}), "one content-length at most"),
        (replies(OK | {"headers": [(b"content-length", b"x")]}), "b'x' is not a content-length"),
    ],
)
def test_what_fails_before_the_reply_is_a_500_that_names_the_app(app: App, said: str) -> None:
    reply = asked(app)
    assert (reply.status, reply.json["type"]) == (500, "InternalError")
    assert reply.json["message"].startswith("The app own (own:app of own 1.0) failed: ")
    assert said in reply.json["message"]


@pytest.mark.parametrize(
    "app",
    [
        replies(OK, PART, raises=ValueError("no")),
        replies(OK, PART),
        replies(OK, PART, OK),
        replies(OK, PART, {"type": "http.response.body", "body": "text"}),
        replies(OK | {"headers": [(b"content-length", b"2")]}, LAST),
    ],
)
def test_what_fails_behind_the_head_breaks_off(app: App) -> None:
    async def test() -> None:
        bench = Bench(own=app)
        with pytest.raises(StreamBroken):
            await bench.ask("GET", "/apps/own/")
        assert bench.log.lines == [("GET /apps/own/", 500)]

    run(test())


@pytest.mark.parametrize("app", [replies(OK, LAST, LAST), replies(OK, LAST, raises=ValueError("late"))])
def test_what_fails_behind_the_reply_is_logged(app: App, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> Exchange:
        reply = await Bench(own=app).ask("GET", "/apps/own/")
        await until(lambda: bool(caplog.records))
        return reply

    assert run(test()).body == b"last"
    assert "the app own (own:app of own 1.0) failed" in caplog.text


async def waits(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    await asyncio.Event().wait()


def test_an_app_that_does_not_answer_is_a_504() -> None:
    reply = asked(waits, limits=LIMITS._replace(default_response_timeout=0.01))
    assert reply.status == 504
    assert "did not begin its reply within default_response_timeout (0.01 s)" in reply.json["message"]


def test_an_app_that_goes_on_without_its_client_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_call, "GRACE", 0.01)
    ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def test() -> None:
        bench = Bench(own=app)
        reply = bench.begin("GET", "/apps/own/")
        await until(lambda: bench.apps.busy)
        reply.leave()
        await until(lambda: not bench.apps.busy)
        await ended.wait()
        assert bench.log.lines == [("GET /apps/own/", 499)]

    run(test())


def test_an_app_that_sends_without_an_end_stops_when_its_client_leaves() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await send(OK)
        while True:
            await send(PART)

    async def test() -> None:
        bench = Bench(own=app)
        reply = bench.begin("GET", "/apps/own/")
        await reply.until_chunks(2)
        reply.leave()
        await until(lambda: not bench.apps.busy)

    run(test())


async def takes(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads all and answers, whatever comes."""
    assert scope["type"] == "http"
    while (message := await receive())["type"] == "http.request" and message.get("more_body"):
        continue
    await send(OK)
    await send({"type": "http.response.body", "body": message["type"].encode()})


def test_bodies_are_bounded() -> None:
    async def test() -> None:
        bench = Bench(LIMITS._replace(max_request_size=100_000), own=takes, most_held=50_000)
        assert (await bench.ask("POST", "/apps/own/", bytes(40_000))).body == b"http.request"
        assert (await bench.ask("POST", "/apps/own/", bytes(100_001))).status == 413
        bench.held.held = 20_000
        full = await bench.ask("POST", "/apps/own/", bytes(40_000))
        assert full.status == 503
        assert "max_queued_bytes (50000)" in full.json["message"]
        bench.held.held = 0
        chunked = bench.begin("POST", "/apps/own/", None)
        chunked.send_body(bytes(45_000), more=True)
        await until(lambda: bench.held.held == 45_000)
        chunked.leave()
        await until(lambda: bench.held.held == 0)

    run(test())


def test_a_body_in_pieces_is_bounded() -> None:
    async def test() -> None:
        bench = Bench(own=takes)
        reply = bench.begin("POST", "/apps/own/", None)
        reply.send_body(bytes(800), more=True)
        reply.send_body(bytes(800))
        assert (await reply.finish()).status == 413
        assert bench.held.held == 0

    run(test())


def test_a_websocket_is_a_501() -> None:
    reply = asked(plain, "/apps/own/ws", sec_websocket_key="x", upgrade="websocket")
    assert reply.status == 501
    assert "which this server does not speak: use HTTP, with server-sent events" in reply.json["message"]


@pytest.mark.parametrize(
    ("apps", "models", "status"),
    [(None, None, 200), (("own",), None, 200), (("other",), None, 403), (None, ("m",), 403), (("own",), ("m",), 200)],
)
def test_a_key_may_be_good_for_some_apps(
    apps: tuple[str, ...] | None, models: tuple[str, ...] | None, status: int
) -> None:
    """A key that names models or apps is good for these alone."""
    given = {"apps": apps, "models": models}
    entry = {name: list(value) for name, value in given.items() if value is not None}
    key, _ = read_entry(1, {"name": "team-a", "key": "k" * 32, "kind": "inference", **entry})

    async def test() -> None:
        bench = Bench(key=key, own=plain)
        assert (await bench.ask("GET", "/apps/own/")).status == 400
        reply = await bench.ask("GET", "/apps/own/", authorization="Bearer good")
        assert reply.status == status
        if status == 403:
            assert 'The key "team-a" is not for the app own' in reply.json["message"]
        await until(lambda: bench.log.keys == ["", "team-a"])

    run(test())


async def crashes(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        raise OSError("no such file")
    await plain(scope, receive, send)


async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no such file"})
        return
    await plain(scope, receive, send)


async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await asyncio.Event().wait()
    await plain(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "why"),
    [
        (crashes, "its lifespan failed: OSError: no such file"),
        (refuses, "its lifespan failed: no such file"),
        (hangs, "its lifespan did not start within app_startup_timeout (0.01 s)"),
    ],
)
def test_a_lifespan_that_fails_is_a_503_of_its_app_alone(app: App, why: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        bench = Bench(LIMITS._replace(app_startup_timeout=0.01), bad=app, good=plain)
        reply = await bench.ask("GET", "/apps/bad/")
        assert reply.status == 503
        assert reply.json["message"] == f"The app bad (own:app of own 1.0) does not answer: {why}."
        assert (await bench.ask("GET", "/apps/good/")).status == 200
        listed = await _listed(bench)
        assert listed[0] == {
            "name": "bad",
            "plugin": "bad (own:app of own 1.0)",
            "path": "/apps/bad",
            "status": "FAILED",
            "reason": why,
        }
        assert (listed[1]["name"], listed[1]["status"]) == ("good", "READY")
        await bench.apps.stop()

    run(test())
    assert f"the app bad (own:app of own 1.0) does not answer: {why}" in caplog.text


async def _listed(bench: Bench) -> Any:
    management = exchange_of(bench.families[1], log=FakeAccessLog())
    return (await begin(management, "GET", "/apps").finish()).json["apps"]


def test_the_description_has_the_app() -> None:
    async def test() -> None:
        family = openapi("MSX", Bench(own=plain).families[:1], tuple, None)
        shown = await begin(exchange_of(family, log=FakeAccessLog()), "GET", "/openapi.json").finish()
        told = shown.json["paths"]["/apps/own"]["get"]["summary"]
        assert told == "The app own (own:app of own 1.0): it answers all methods and paths below"

    run(test())


def test_a_lifespan_that_does_not_end_is_left(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await asyncio.Event().wait()
        await plain(scope, receive, send)

    async def test() -> None:
        bench = Bench(own=app)
        assert (await bench.ask("GET", "/apps/own/")).status == 200
        await bench.apps.stop()

    run(test())
    assert "did not end within app_shutdown_timeout (0.05 s)" in caplog.text


def test_a_server_that_stops_takes_no_more_requests() -> None:
    async def test() -> None:
        bench = Bench(own=plain)
        bench.apps.draining = True
        assert (await bench.ask("GET", "/apps/own/")).status == 503

    run(test())


@pytest.mark.parametrize(
    ("name", "value", "merged", "said"),
    [
        ("a/b", plain, False, "an app's name has 1 to 64 letters"),
        ("own", "text", False, "is not an ASGI application: name an instance"),
        ("own", Starlette, False, "is not an ASGI application: name an instance"),
        ("own", plain, True, "must not answer where management does, whose console keeps a key"),
    ],
)
def test_what_keeps_the_server_from_starting(name: str, value: Any, merged: bool, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        UserApps([Plugin(name, "own (own:app of own 1.0)", value)], LIMITS, Counts(), merged=merged)


@pytest.fixture(autouse=True)
def log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
