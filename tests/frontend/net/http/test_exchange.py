"""The outermost layer: tokens, ids, headers, CORS, the access log."""

from __future__ import annotations

import pytest

from msx_core.service_errors import InvalidKey
from msx_frontend.keys.key import Key
from msx_net.http.cors import Cors
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import json_reply
from msx_net.http.request import Request
from msx_net.keys import Kind
from tests.frontend.keys.some import SELDOM, some_key
from tests.frontend.net.predictions import FakeRegistry, answer, predictions
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask, begin, scope
from tests.net.http.exchanges import exchange_of


async def show(request: Request) -> Reply:
    return json_reply({"path": request.call.path, "id": request.call.id})


async def break_down(request: Request) -> Reply:
    raise ZeroDivisionError("by zero")


SHOWN = Family(
    "shown",
    (
        Route("GET", "/", show, any_method=True),
        Route("GET", "/show", show, any_method=True),
        Route("GET", "/bug", break_down),
        Route("GET", "/wfpredict/{model}", show),
        Route("GET", "/livez", show, key=None),
        Route("OPTIONS", "/", show, key=None),
        Route("GET", "/api-description", show, key=None),
    ),
    torchserve_failure,
    closes_on_error=True,
)


class Bench:
    def __init__(self, *, tokens: bool = False, cors: bool = False) -> None:
        self.log, self.registry = FakeAccessLog(), FakeRegistry()
        self.checked: list[str | None] = []
        self.key = some_key()
        self.edge = exchange_of(
            predictions(self.registry),
            SHOWN,
            log=self.log,
            tokens=self if tokens else None,
            cors=Cors("*") if cors else None,
        )

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        assert kinds == ("inference",)
        self.checked.append(authorization)
        if authorization != "Bearer good":
            raise InvalidKey("Token Authentication failed.")
        return self.key

    def ask(self, target: str, method: str = "GET", **headers: str) -> Exchange:
        return run(ask(self.edge, method, target, b"", **headers))


def test_a_key_names_who_asked_and_how_often() -> None:
    bench = Bench(tokens=True)
    bench.key = some_key("team-a", rate=SELDOM)
    assert bench.ask("/show", authorization="Bearer good").status == 200
    refused = bench.ask("/show", authorization="Bearer good")
    assert (refused.status, refused.json["type"]) == (429, "TooManyRequestsException")
    assert refused.json["message"] == 'The key "team-a" is above its rate of 0.001 per second (api_keys_file).'
    assert bench.ask("/show").status == 400
    assert bench.log.keys == ["team-a", "team-a", ""]


def test_a_workflow_is_asked_like_a_model() -> None:
    bench = Bench(tokens=True)
    bench.key = some_key("team-a", models=("w",))
    assert bench.ask("/wfpredict/w", authorization="Bearer good").status == 200
    assert bench.ask("/wfpredict/v", authorization="Bearer good").status == 403
    assert bench.ask("/predictions/v", "OPTIONS", authorization="Bearer good").status == 403


@pytest.mark.parametrize(("text", "status"), [("high", 403), ("urgent", 400)])
def test_a_class_that_is_refused(text: str, status: int) -> None:
    """Requests that are not jobs have no class: a proxy may write the header into all that it passes on."""
    bench = Bench(tokens=True)
    bench.key = some_key("team-a")
    said = {"authorization": "Bearer good", "x_msx_priority": text}
    assert bench.ask("/predictions/m", "POST", **said).status == status
    assert bench.ask("/show", **said).status == 200


def test_every_reply_has_an_id_and_cache_headers() -> None:
    exchange = Bench().ask("/show", x_request_id="id-1")
    assert exchange.json == {"path": "/show", "id": "id-1"}
    assert exchange.headers["x-request-id"] == "id-1"
    assert exchange.headers["pragma"] == "no-cache"
    other = Bench().ask("/show")
    assert other.headers["x-request-id"] == other.json["id"] != "id-1"


def test_an_error_ends_the_connection() -> None:
    exchange = Bench().ask("/nowhere")
    assert (exchange.status, exchange.headers["connection"]) == (404, "close")


@pytest.mark.parametrize(("target", "path"), [("/show/", "/show"), ("/show//", "/show"), ("/", "/"), ("//", "/")])
def test_a_slash_at_the_end_makes_no_difference(target: str, path: str) -> None:
    assert Bench().ask(target).json["path"] == path


def test_the_access_log_has_every_request() -> None:
    bench = Bench(tokens=True)
    bench.ask("/show?a=%0A", authorization="Bearer good")
    bench.ask("/nowhere", "POST", authorization="Bearer good")
    bench.ask("/show")
    assert bench.log.lines == [("GET /show?a=%0A", 200), ("POST /nowhere", 404), ("GET /show", 400)]


def test_a_bug_is_in_the_access_log_too() -> None:
    bench = Bench()
    assert bench.ask("/bug").status == 500
    assert bench.log.lines == [("GET /bug", 500)]


def test_a_bug_in_a_prediction_is_told_and_in_the_access_log(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()

    def submit(job: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(bench.registry, "submit", submit)
    told = bench.ask("/predictions/m", "POST")
    assert (told.status, told.json["message"]) == (500, "Internal error: ZeroDivisionError: by zero")
    assert bench.log.lines == [("POST /predictions/m", 500)]


def test_tokens() -> None:
    bench = Bench(tokens=True)
    assert bench.ask("/show", authorization="Bearer good").status == 200
    refused = bench.ask("/show", authorization="Bearer bad")
    assert (refused.status, refused.json["type"]) == (400, "InvalidKeyException")
    assert refused.headers["connection"] == "close"
    assert bench.ask("/show").status == 400
    assert bench.checked == ["Bearer good", "Bearer bad", None]


def test_a_prediction_without_a_token_is_not_even_read() -> None:
    async def test() -> Exchange:
        bench = Bench(tokens=True)
        exchange = await begin(bench.edge, "POST", "/predictions/m", None).finish()
        assert bench.registry.idle
        return exchange

    exchange = run(test())
    assert (exchange.status, exchange.asked) == (400, 0)


@pytest.mark.parametrize(
    ("method", "target"), [("GET", "/livez"), ("GET", "/livez/"), ("OPTIONS", "/"), ("GET", "/api-description")]
)
def test_what_needs_no_token(method: str, target: str) -> None:
    bench = Bench(tokens=True)
    bench.ask(target, method)
    assert bench.checked == []


def test_other_options_need_one() -> None:
    assert Bench(tokens=True).ask("/predictions/m", "OPTIONS").status == 400


def test_cors_headers_are_on_every_reply() -> None:
    async def predict() -> Exchange:
        exchange = begin(bench.edge, "POST", "/predictions/m")
        answer(await bench.registry.next_job(), b"x")
        return await exchange.finish()

    bench = Bench(tokens=True, cors=True)
    replies = [bench.ask("/show"), bench.ask("/show", authorization="Bearer good")]
    bench = Bench(cors=True)
    replies += [run(predict()), bench.ask("/predictions/nobody", "POST")]
    assert [reply.headers["access-control-allow-origin"] for reply in replies] == ["*"] * 4
    assert [reply.status for reply in replies] == [400, 200, 200, 404]
    assert "access-control-allow-origin" not in Bench().ask("/show").headers


def test_other_protocols_are_left_alone() -> None:
    bench = Bench()
    exchange = Exchange()

    async def test() -> None:
        exchange.start(bench.edge, {**scope("GET", "/show"), "type": "websocket"})
        await exchange.finish()

    run(test())
    assert (exchange.status, bench.log.lines) == (0, [])
