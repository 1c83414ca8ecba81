"""Replies over REST."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from msx_core.packed import OneBytes, OneText, Tensor
from msx_core.service_errors import DeadlineExceeded, HandlerFailed, Overloaded, ServiceUnavailable, WorkerDied
from tests.compat.mindspore_serving.family.fakes import FakeServables, Values, ask_rest
from tests.phrases import worker_died


def answered(value: Any) -> bytes:
    """The JSON of one output."""
    reply = ask_rest(FakeServables(lambda values: {"y": value}), {"instances": {"x": 1}})
    assert reply.startswith(b'{"instances":[{"y":')
    return reply[len(b'{"instances":[{"y":') : -len(b"}]}")]


def tensor(dtype: str, shape: tuple[int, ...], letter: str, *numbers: float) -> Tensor:
    return Tensor(dtype, shape, struct.pack(f"<{len(numbers)}{letter}", *numbers))


NAN, INF = float("nan"), float("inf")
VALUES = [
    (tensor("bool", (2,), "?", True, False), b"[true,false]"),
    (tensor("int8", (), "b", -3), b"-3"),
    (tensor("uint8", (1, 2), "B", 1, 255), b"[[1,255]]"),
    (tensor("int16", (1,), "h", -300), b"[-300]"),
    (tensor("uint16", (1,), "H", 65535), b"[65535]"),
    (tensor("int32", (2, 1), "i", 1, -2), b"[[1],[-2]]"),
    (tensor("uint32", (), "I", 2**32 - 1), b"4294967295"),
    (tensor("int64", (), "q", -(2**63)), b"-9223372036854775808"),
    (tensor("uint64", (1,), "Q", 2**64 - 1), b"[18446744073709551615]"),
    (tensor("float16", (2,), "e", 0.1, 2), b"[0.0999755859375,2.0]"),
    (tensor("float16", (2, 1, 2), "e", 1, 2, 3, 4), b"[[[1.0,2.0]],[[3.0,4.0]]]"),
    (tensor("float32", (), "f", 0.1), b"0.10000000149011612"),
    (tensor("float32", (2,), "f", 1, 1e22), b"[1.0,9.999999778196308e21]"),
    (tensor("float32", (3,), "f", NAN, INF, -INF), b"[null,null,null]"),
    (tensor("float64", (2,), "d", 0.1, -0.0), b"[0.1,-0.0]"),
    (Tensor("float32", (0,), b""), b"[]"),
    (Tensor("float32", (2, 0), b""), b"[[],[]]"),
    (Tensor("float32", (0, 3), b""), b"[]"),
    (Tensor("float16", (1, 2, 0, 3), b""), b"[[[],[]]]"),
    ("ä\n", '"ä\\n"'.encode()),
    (b"\0\1", b'{"b64":"AAE="}'),
    (OneText("a"), b'["a"]'),
    (OneBytes(b""), b'[{"b64":""}]'),
    (3, b"3"),
    (2.5, b"2.5"),
    (True, b"true"),
    ([1, [b""]], b'[1,[{"b64":""}]]'),
    ({"b": 1, "a": None}, b'{"a":null,"b":1}'),
]


@pytest.mark.parametrize(("value", "json"), VALUES)
def test_values(value: Any, json: bytes) -> None:
    assert answered(value) == json


@pytest.mark.parametrize(("value", "count"), [(tensor("float32", (2,), "f", 1, NAN), 1), ({"a": None}, 0), ("null", 0)])
def test_replies_with_null_for_nan_are_counted(value: Any, count: int, caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeServables(lambda values: {"y": value})
    ask_rest(fake, {"instances": {"x": 1}})
    assert fake.versions[1].non_finite == count
    assert ("a reply has NaN or an infinity at instances[0].y[1]" in caplog.text) == bool(count)


def test_outputs_are_sorted() -> None:
    assert ask_rest(FakeServables(), {"instances": [{"b": "1", "a": "2"}]}) == b'{"instances":[{"a":"2","b":"1"}]}'


def fails_at(*names: str, text: str = "bad", code: str = "3", status: int = 400) -> FakeServables:
    def call(values: Values) -> Values:
        if values["x"] in names:
            raise HandlerFailed(status, text, code)
        return values

    return FakeServables(call)


def instances(*values: str) -> Any:
    return {"instances": [{"x": value} for value in values]}


def test_an_instance_that_fails_alone() -> None:
    reply = ask_rest(fails_at("b"), instances("a", "b", "c"))
    assert reply == b'{"instances":[{"x":"a"},{"error_msg":"bad"},{"x":"c"}]}'


def test_a_long_message_is_whole() -> None:
    """There, 384 bytes of it are."""
    reply = ask_rest(fails_at("a", text="bad " * 500), instances("a"))
    assert reply == b'{"error_msg":"%b"}' % (b"bad " * 500)


def test_all_instances_fail_alike() -> None:
    assert ask_rest(fails_at("a", "b"), instances("a", "b")) == b'{"error_msg":"bad"}'
    assert ask_rest(fails_at("a"), instances("a")) == b'{"error_msg":"bad"}'


def test_all_instances_fail_otherwise() -> None:
    def call(values: Values) -> Values:
        raise HandlerFailed(400, f"bad {values['x']}", "3")

    reply = ask_rest(FakeServables(call), instances("a", "b"))
    assert reply == b'{"instances":[{"error_msg":"bad a"},{"error_msg":"bad b"}]}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, b"Failed to construct the response: reply instance items is empty"),
        (
            [1],
            b"Method same of servable any must return a dict of its outputs, but returned list",
        ),
        (
            {"y": Tensor("int8", (100_001, 0), b"")},
            b"The worker of servable any answered what cannot be read: an array of shape [100001, 0] has more than "
            b"65536 rows without numbers",
        ),
    ],
)
def test_replies_without_a_form(value: Any, message: bytes) -> None:
    reply = ask_rest(FakeServables(lambda values: value), instances("a"))
    assert reply == b'{"error_msg":"%b"}' % message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ServiceUnavailable("No worker."), b"Request servable(any) method(same) , servable is not available"),
        (
            Overloaded("Full of requests.", plain="Full."),
            b"Serving Error: enqueued requests count exceeds the limit: Full.",
        ),
        (WorkerDied("It ended."), worker_died("It ended.").encode()),
        (DeadlineExceeded("Too late."), b"Too late."),
    ],
)
def test_requests_that_are_not_taken(error: Any, message: bytes) -> None:
    fake = FakeServables()
    fake.refusal = error
    assert ask_rest(fake, instances("a")) == b'{"error_msg":"%b"}' % message
