from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import pytest

from msx_sdk import InvalidInput, Last
from msx_sdk.context import Context
from tests.core.recording import LAST, Handles, requests, run


def test_a_generator_streams() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        yield ["a0", None]
        yield ["a1", Last("b0")]
        yield [Last("a2"), None]

    sink = run(Handles(handle), requests(b"", b""))
    assert sink.events == {"r0": [b"a0", b"a1", b"a2", LAST], "r1": [b"b0", LAST]}


def test_a_generators_return_is_the_last_chunk_of_those_left() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, Any]:
        yield [Last("early"), "b"]
        return ["ignored", "end"]

    sink = run(Handles(handle), requests(b"", b""))
    assert sink.events == {"r0": [b"early", LAST], "r1": [b"b", b"end", LAST]}


def test_a_generators_end_ends_those_left() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        yield ["a"]

    assert run(Handles(handle), requests(b"")).events == {"r0": [b"a", b"", LAST]}


def test_a_yielded_exception_ends_its_request() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        yield [InvalidInput("x"), "b"]
        yield ["not seen", Last("c")]

    sink = run(Handles(handle), requests(b"", b""))
    assert sink.events["r1"] == [b"b", b"c", LAST]
    assert [failure.status for failure in sink.events["r0"]] == [400]


def test_an_error_midway_fails_those_left() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        yield [Last("a"), "b"]
        raise ValueError("x")

    sink = run(Handles(handle), requests(b"", b""))
    assert sink.events["r0"] == [b"a", LAST]
    assert sink.events["r1"][0] == b"b"
    assert sink.failure("r1").status == 503


def test_a_generator_that_fails_before_its_first_yield_is_isolated() -> None:
    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        if any(row["body"] == b"bad" for row in data):
            raise InvalidInput("x")
        yield ["a"]

    sink = run(Handles(handle), requests(b"good", b"bad"))
    assert sink.events["r0"] == [b"a", b"", LAST]
    assert sink.failure("r1").status == 400


@pytest.mark.parametrize("value", ["bare", b"bare", {"token": 1}])
def test_a_generator_of_bare_values_is_refused_and_closed(value: Any) -> None:
    closed = []

    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        try:
            yield value
        finally:
            closed.append(True)

    sink = run(Handles(handle), requests(b""))
    assert "yields or sends a list" in sink.failure("r0").message
    assert closed == [True]


def test_a_deserted_generator_is_closed_at_its_next_yield() -> None:
    batch = requests(b"", b"")
    seen: list[Any] = []

    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        try:
            for n in range(100):
                yield [str(n), str(n)]
                seen.append((context.cancelled(0), context.cancelled(1)))
                batch[n].cancelled = True
        finally:
            seen.append("closed")

    sink = run(Handles(handle), batch)
    assert seen == [(False, False), (True, False), "closed"]
    assert sink.events == {"r0": [b"0"], "r1": [b"0", b"1"]}


def test_a_generator_is_closed_when_all_have_ended() -> None:
    closed: list[bool] = []

    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        with contextlib.ExitStack() as stack:
            stack.callback(closed.append, True)
            while True:
                yield [Last("only")]

    assert run(Handles(handle), requests(b"")).events == {"r0": [b"only", LAST]}
    assert closed == [True]


def test_a_generator_that_refuses_to_close_does_not_break_the_worker() -> None:
    batch = requests(b"")

    def handle(data: Any, context: Context) -> Generator[Any, None, None]:
        batch[0].cancelled = True
        with contextlib.suppress(GeneratorExit):
            yield ["a"]
        yield ["b"]

    assert run(Handles(handle), batch).events == {}
