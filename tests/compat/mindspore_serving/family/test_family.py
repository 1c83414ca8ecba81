"""MindSpore Serving's routes behind the server's own rules, and requests that are too large for the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from msx_core.service_errors import (
    Bug,
    InvalidKey,
    ModelNotAllowed,
    PayloadTooLarge,
    PriorityNotAllowed,
    ServiceError,
    SlowRequest,
    TooManyRequests,
)
from msx_mindspore_serving.family.calls import LARGE
from msx_mindspore_serving.family.family import mindspore_serving, mindspore_serving_alone, serving_failure
from tests.compat.mindspore_serving.family.fakes import FakeServables, begin_rest
from tests.frontend.keys.some import some_key
from tests.net.http.client import FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

LIMIT = 1000
ONE = b'{"instances":{"x":1}}'
ONLY_POST = {"error_msg": "http message only support POST right now"}


def app(*, alone: bool = False, **options: Any) -> Any:
    make = mindspore_serving_alone if alone else mindspore_serving
    return exchange_of(make(FakeServables().servables, LIMIT), log=FakeAccessLog(), limit=LIMIT, **options)


def run(test: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(test)


@pytest.mark.parametrize("path", ["/model/any:same", "/model/any/version/1:same", "/version/1/model/any:same"])
def test_routes(path: str) -> None:
    reply = run(ask(app(), "POST", path, ONE))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.body == b'{"instances":[{"x":1}]}'


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
@pytest.mark.parametrize("alone", [True, False])
def test_other_methods(method: str, alone: bool) -> None:
    reply = run(ask(app(alone=alone), method, "/model/any:same", ONE))
    assert reply.status == 200
    if method == "HEAD":
        assert reply.body == b""
    else:
        assert reply.json == ONLY_POST


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/", "please check url, the keyword:[model] must contain."),
        ("/model", "please check url, the keyword:[model] must contain."),
        ("/model/any", "please check url, the keyword:[service method] must contain."),
        ("/model/none:x", "Request servable(none) method(x) , servable is not available"),
    ],
)
def test_a_listener_of_its_own_answers_all_paths(path: str, message: str) -> None:
    assert run(ask(app(alone=True), "POST", path, ONE)).json == {"error_msg": message}


@pytest.mark.parametrize("alone", [True, False])
def test_a_request_that_is_too_large(alone: bool) -> None:
    reply = run(ask(app(alone=alone), "POST", "/model/any:same", bytes(LIMIT + 1)))
    assert (reply.status, reply.json) == (200, {"error_msg": f"http message is bigger than {LIMIT}"})


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidKey("No key."), 401),
        (ModelNotAllowed("k", "m", []), 403),
        (PriorityNotAllowed("k", "high", "normal"), 403),
        (TooManyRequests("k", 1, 1), 429),
        (SlowRequest("slow"), 408),
        (Bug(ValueError()), 500),
        (PayloadTooLarge("Large."), 200),
        (ServiceError("Other."), 200),
    ],
)
def test_statuses(error: ServiceError, status: int) -> None:
    failure = serving_failure(LIMIT, error)
    assert failure.status == status
    assert failure.body.startswith(b'{"error_msg":"')


class OneModel:
    """A key that is good for the model `any` alone."""

    def check_any(self, kinds: Any, authorization: str | None) -> Any:
        return some_key("team-a", models=("any",))


def test_a_key_is_held_to_the_name_in_the_raw_target() -> None:
    """Names in it are not decoded: the router's names may be others."""
    tokens = OneModel()
    good = run(ask(app(tokens=tokens), "POST", "/model/any:same", ONE))
    refused = [
        run(ask(app(tokens=tokens), "POST", path, ONE)) for path in ("/model/add:add", "/%6dodel/any:model=add:x")
    ]
    assert good.json == {"instances": [{"x": 1}]}
    assert [reply.status for reply in refused] == [403, 403]


def big(name: str) -> bytes:
    return b'{"instances":{"x":"%b"}}' % (name.encode() * LARGE)


def test_large_requests_and_replies_are_handled_in_a_thread() -> None:
    threads: list[str] = []

    async def test() -> None:
        fake = FakeServables()
        taken = fake.submit_instances
        fake.versions_of = _noting(fake.versions_of, threads)  # type: ignore[method-assign]
        fake.submit_instances = _noting(taken, threads)  # type: ignore[method-assign]
        reply = begin_rest(fake, big("a"))
        assert reply.data is None
        await reply.told.wait()
        assert reply.data == b'{"instances":[{"x":"%b"}]}' % (b"a" * LARGE)

    run(test())
    assert [name.startswith("serving") for name in threads] == [True, False]


def _noting(function: Any, threads: list[str]) -> Any:
    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return function(*args)

    return noted


def test_a_large_request_that_is_refused() -> None:
    async def test() -> None:
        reply = begin_rest(FakeServables(), b"x" * (LARGE + 1))
        await reply.told.wait()
        assert (reply.data or b"").startswith(b'{"error_msg":"Illegal JSON format.')

    run(test())


def test_a_client_that_leaves_while_its_request_is_read() -> None:
    async def test() -> None:
        fake = FakeServables()
        left, stays = begin_rest(fake, big("a")), begin_rest(fake, big("b"))
        assert left.job is not None
        left.job.cancel()
        await stays.told.wait()
        assert (left.data, left.error) == (None, None)
        assert [values["x"][:1] for values in fake.seen] == ["b"]

    run(test())


def test_a_bug_in_a_thread() -> None:
    async def test() -> None:
        def broken(name: str) -> Any:
            raise RuntimeError("boom")

        fake = FakeServables()
        fake.versions_of = broken  # type: ignore[method-assign]
        reply = begin_rest(fake, big("a"))
        await reply.told.wait()
        assert isinstance(reply.error, Bug)

    run(test())
