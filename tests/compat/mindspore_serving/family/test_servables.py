"""Which method a request is for, and what its instances must have: by REST and gRPC alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.compat.mindspore_serving.family.fakes import (
    MOST_INSTANCES,
    FakeServables,
    FakeVersion,
    TensorMessage,
    ask_grpc,
    ask_rest,
    begin_grpc,
    begin_rest,
    request_of,
    told,
)

MANY = b'{"instances":[%b]}' % b",".join([b'{"x":1}'] * (MOST_INSTANCES + 1))
ONE = TensorMessage(dtype=6, data=b"\1\0\0\0")


def by_rest(fake: FakeServables, name: str, method: str, version: int, *inputs: tuple[str, ...]) -> tuple[int, str]:
    instances = [dict.fromkeys(one, 1) for one in inputs]
    number = f"/version/{version}" if version else ""
    reply = msgspec.json.decode(ask_rest(fake, {"instances": instances}, f"/model/{name}{number}:{method}"))
    return 2, reply.get("error_msg", "")


def by_grpc(fake: FakeServables, name: str, method: str, version: int, *inputs: tuple[str, ...]) -> tuple[int, str]:
    instances = [dict.fromkeys(one, ONE) for one in inputs]
    reply = ask_grpc(fake, *instances, name=name, method=method, version=version)
    if not reply.error_msg:
        return 2, ""
    assert not reply.instances
    assert (reply.servable_spec.name, reply.servable_spec.version_number) == (name, version)
    (error,) = told(reply)
    return error


Ask = Callable[..., tuple[int, str]]
both = pytest.mark.parametrize("ask", [by_rest, by_grpc])


@both
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("add", "add", 0, ("x1", "x2", "more")), ""),
        (("add", "add", 1, ("x1", "x2")), ""),
        (("any", "same", 1, ("x",)), ""),
        (("none", "add", 0, ("x",)), "Request servable(none) method(add) , servable is not available"),
        (("none", "add", 2, ("x",)), "Request servable(none) method(add)  version(2) , servable is not available"),
        (("add", "add", 2, ("x",)), "Request servable(add) method(add)  version(2) , servable is not available"),
        (("add", "sub", 0, ("x",)), "Request servable(add) method(sub) , method is not available"),
        (("add", "sub", 1, ("x",)), "Request servable(add) method(sub)  version(1) , method is not available"),
        (
            ("add", "add", 0, ("x1", "x2"), ("x2",)),
            "Cannot find input x1 in instance input , servable add, method add",
        ),
    ],
)
def test_what_is_asked_for(ask: Ask, asked: Any, message: str) -> None:
    assert ask(FakeServables(), *asked) == (2, message)


@both
def test_a_servable_that_is_loading(ask: Ask) -> None:
    fake = FakeServables()
    fake.versions = [FakeVersion("add", "1", None)]
    message = "Request servable(add) method(add) , servable is not available"
    assert ask(fake, "add", "add", 0, ("x1", "x2")) == (2, message)


@both
def test_more_instances_than_may_wait(ask: Ask) -> None:
    async def asked() -> None:
        fake, one = FakeServables(), {"x": ONE}
        many = [one] * (MOST_INSTANCES + 1)
        sink = begin_grpc(fake, request_of(*many)) if ask is by_grpc else begin_rest(fake, MANY)
        await sink.told.wait()
        assert b"The request has 1001 instances, and at most 1000 of model any may wait" in (sink.data or b"")

    asyncio.run(asked())


@both
def test_too_many_requests_come_first(ask: Ask) -> None:
    fake = FakeServables()
    fake.enqueued.limit = 0
    code, message = ask(fake, "none", "add", 0, ("x1",))
    assert message == "Serving Error: enqueued requests count exceeds the limit 0"
    assert code == (2 if ask is by_rest else 1)


@both
@pytest.mark.parametrize(
    ("versions", "asked"),
    [
        ([("2", 1), ("10", 1), ("9", 1)], "10"),
        ([("2", 1), ("10", 0)], "2"),
        ([("2", 0), ("10", 0)], "10"),
        ([("1.0", 1), ("3.0", 1)], "3.0"),
        ([("blue", 1), ("green", 1)], "blue"),
        ([("blue", 1), ("1", 1)], "1"),
    ],
)
def test_version_0_is_the_newest_that_answers(ask: Ask, versions: Any, asked: str) -> None:
    fake = FakeServables()
    methods = fake.versions[1].schema.methods
    fake.versions = [FakeVersion("any", version, methods, ready=ready) for version, ready in versions]
    assert ask(fake, "any", "same", 0, ("x",)) == (2, "")
    assert fake.asked == [(asked, "packed:same")]


def test_the_workers_input() -> None:
    fake = FakeServables()
    by_rest(fake, "add", "add", 0, ("x1", "x2", "more"), ("x2", "x1"))
    assert [[*one] for one in fake.seen] == [["x1", "x2"], ["x1", "x2"]]
