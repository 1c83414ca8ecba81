"""Parameters of management requests, JSON replies, and errors of routes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.models.parameters import boolean, integer, text
from msx_net.http import exchange
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.parameters import parameters
from msx_net.http.replies import json_reply, status_reply
from msx_net.http.request import Request
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask, begin
from tests.net.http.exchanges import exchange_of
from tests.retry import told_wait


async def show(request: Request) -> Reply:
    return json_reply(parameters(request))


async def refuse(request: Request) -> Reply:
    raise ServiceUnavailable("Come again.")


async def break_down(request: Request) -> Reply:
    raise ZeroDivisionError("by zero")


def app(log: FakeAccessLog) -> exchange.Exchange:
    routes = (
        Route("POST", "/show", show, any_method=True),
        Route("GET", "/refuse", refuse),
        Route("GET", "/bug", break_down),
        Route("GET", "/get", show),
    )
    return exchange_of(Family("f", routes, torchserve_failure, closes_on_error=True), log=log, limit=100)


def asked(target: str, body: bytes = b"", method: str = "POST", **headers: str) -> Exchange:
    return run(ask(app(FakeAccessLog()), method, target, body, **headers))


JSON = {"content_type": "application/json"}


def test_parameters_of_the_query() -> None:
    assert asked("/show?a=1&b=x%20y").json == {"a": "1", "b": "x y"}


def test_members_of_a_json_body_win() -> None:
    assert asked("/show?a=1&b=2", b'{"b": 3, "c": null}', **JSON).json == {"a": "1", "b": 3, "c": None}
    assert asked("/show?a=1", b"", **JSON).json == {"a": "1"}
    assert asked("/show?a=1", b"{}", content_type="application/json; charset=utf-8").json == {"a": "1"}


def test_other_bodies_are_not_parameters() -> None:
    assert asked("/show?a=1", b'{"a": 2}', content_type="text/plain").json == {"a": "1"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b'{"a\xff": 1}', "not valid JSON: line 1, column 4"),
        (b"[1]", "must be a JSON object with parameters, not list"),
        (b'"x"', "not str"),
        (b"null", "not NoneType"),
    ],
)
def test_a_json_body_that_is_not_an_object(body: bytes, words: str) -> None:
    exchange = asked("/show", body, **JSON)
    assert (exchange.status, exchange.json["type"]) == (400, "BadRequestException")
    assert words in exchange.json["message"]


@pytest.mark.parametrize("headers", [{}, {"content_length": "300"}])
def test_a_json_body_that_is_too_large(headers: dict[str, str]) -> None:
    exchange = asked("/show", b'{"a": "%s"}' % (b"x" * 200), **JSON, **headers)
    assert (exchange.status, exchange.body) == (413, b"")


def test_a_client_that_leaves_is_not_a_bug_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    log = FakeAccessLog()

    async def test() -> None:
        exchange = begin(app(log), "POST", "/show", None, **JSON)
        exchange.send_body(b'{"a"', more=True)
        exchange.leave()
        await exchange.finish()

    run(test())
    assert log.lines == [("POST /show", 499)]
    assert caplog.records == []


def test_our_own_errors_have_torchserves_body() -> None:
    exchange = asked("/refuse", method="GET")
    assert exchange.status == 503
    assert exchange.json == {"code": 503, "type": "ServiceUnavailableException", "message": "Come again."}
    assert told_wait(exchange.headers)


@pytest.mark.parametrize(
    ("method", "target", "status", "kind"),
    [
        ("GET", "/nowhere", 404, "ResourceNotFoundException"),
        ("POST", "/get", 405, "MethodNotAllowedException"),
    ],
)
def test_paths_and_methods_that_are_not_there(method: str, target: str, status: int, kind: str) -> None:
    exchange = asked(target, method=method)
    assert (exchange.status, exchange.json["code"], exchange.json["type"]) == (status, status, kind)


def test_a_bug_of_the_server_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    exchange = asked("/bug", method="GET", x_request_id="id-1")
    assert exchange.status == 500
    assert exchange.json["message"] == "Internal error: ZeroDivisionError: by zero"
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["request_id"]) == (logging.ERROR, "id-1")
    assert record.exc_info is not None


def test_status_replies() -> None:
    reply = status_reply("Healthy")
    assert (reply.status, reply.body) == (200, b'{\n  "status": "Healthy"\n}\n')
    assert status_reply("Working", 202).status == 202


@pytest.mark.parametrize(("value", "found"), [("3", 3), (3, 3), (" 3 ", 3), ("-1", -1), (2147483647, 2147483647)])
def test_integers(value: Any, found: int) -> None:
    assert integer({"n": value}, "n") == found


@pytest.mark.parametrize("value", ["", "x", "1.5", None, [], {}, "2147483648", 10**30, -(10**30), float("inf")])
def test_what_is_not_an_integer_of_32_bits_counts_as_not_given(value: Any) -> None:
    assert integer({"n": value}, "n") is None
    assert integer({"n": value}, "n", 7) == 7
    assert integer({}, "n", 7) == 7


@pytest.mark.parametrize(("value", "found"), [("true", True), ("TRUE ", True), (True, True), ("1", False), ("", False)])
def test_booleans(value: Any, found: bool) -> None:
    assert boolean({"b": value}, "b", not found) is found
    assert boolean({}, "b", found) is found


def test_texts() -> None:
    assert text({"t": 5}, "t") == "5"
    assert text({"t": None}, "t") is None
    assert text({}, "t") is None
