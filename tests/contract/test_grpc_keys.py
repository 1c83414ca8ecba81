"""The key of a call of gRPC is judged by its headers, for each method of each service, by both transports and on REST
ports; and again with each message of a client's stream.

The methods are those of a server with all of its services: a new one is among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from msx_core.held_bytes import HeldBytes
from msx_frontend.config import ServerConfig
from msx_frontend.keys.key import Key, KeyKind, digest_of
from msx_frontend.keys.rate import Rate
from msx_frontend.keys.tokens import Tokens
from msx_net.grpc.reflection import ReflectionService
from msx_net.grpc.service import Method
from msx_net.keys import Kind
from tests.contract.test_grpc_both_transports import (
    CONFIG,
    HEALTH,
    LIMIT,
    PATHS,
    Bench,
    Way,
    request,
    services_of,
    serving,
)
from tests.frontend.harness import until
from tests.net.grpc.access_log import AccessLog
from tests.raw_grpc import RawAnswer, framed

WAYS = get_args(Way)
REFUSED = "7"
"""PERMISSION_DENIED."""
TOO_MANY = "8"
NAME = "team-a"

METHODS: dict[str, Method] = {
    method.target: method
    for service in services_of(ServerConfig(**CONFIG), AccessLog(), HeldBytes())[1]
    for method in service.methods
}
KEYED = {path: method.key for path, method in METHODS.items() if method.key is not None}
STREAMS = [path for path in KEYED if METHODS[path].client_streams]
REFLECTION = [method.target for service in ReflectionService(()).services() for method in service.methods]
PUBLIC = [*sorted({*PATHS} - {*KEYED}), *REFLECTION]


def test_which_methods_need_no_key() -> None:
    """Whoever adds one to them says so here."""
    assert {path.partition("/")[2] for path in PUBLIC} == {
        *("Check", "Watch", "ServerLive", "ServerReady", "ServerReflectionInfo")
    }
    assert {path.partition("/")[0] for path in PUBLIC} >= {HEALTH}
    assert len(KEYED) > 20


# -- by its headers --


class CountedRate(Rate):
    def __init__(self) -> None:
        super().__init__(1e6)
        self.taken = 0

    def take(self, now: float) -> float:
        self.taken += 1
        return super().take(now)


def key(text: str = "K", kinds: tuple[KeyKind, ...] = ("inference", "management"), **more: Any) -> Key:
    return Key(digest_of(text), frozenset(kinds), NAME, **more)


@asynccontextmanager
async def serving_with(folder: Path, way: Way, *keys: Key) -> AsyncIterator[tuple[Bench, Tokens]]:
    tokens = Tokens(folder / f"{way}.json", 0)
    tokens.give(keys)
    async with serving(way, tokens=tokens) as bench:
        yield bench, tokens
    tokens.close()


def with_keys(folder: Path, way: Way, test: Callable[[Bench, Tokens], Awaitable[None]], *keys: Key) -> None:
    async def main() -> None:
        async with serving_with(folder, way, *keys) as (bench, tokens):
            await asyncio.wait_for(test(bench, tokens), 60)

    asyncio.run(main())


def status_of(answer: RawAnswer) -> str:
    return dict(answer.trailers)["grpc-status"]


BEGUN = framed(bytes(LIMIT))[:-1]
"""A message that never ends."""


def wrong_kind(kind: Kind | None) -> str:
    return "Bearer M" if kind == "inference" else "Bearer I"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sent", ["none", "unknown", "expired", "of another kind"])
def test_who_has_no_key_is_refused_before_the_message_is_there(tmp_path: Path, way: Way, sent: str) -> None:
    keys = key("E", until=1.0), key("I", ("inference",)), key("M", ("management",))

    async def test(bench: Bench, tokens: Tokens) -> None:
        for path, kind in KEYED.items():
            told = {"none": "", "unknown": "Bearer X", "expired": "Bearer E"}.get(sent, wrong_kind(kind))
            call = await bench.begin(path, ("authorization", told))
            call.write(BEGUN, end=False)
            assert status_of(await call.answer()) == REFUSED, path
            assert (bench.held.held, bench.held.public.held) == (0, 0), path
            assert (await bench.line())[2] == "", path

    with_keys(tmp_path, way, test, *keys)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_counts_once_against_the_rate(tmp_path: Path, way: Way) -> None:
    async def test(bench: Bench, tokens: Tokens) -> None:
        for path in KEYED:
            rate = CountedRate()
            tokens.give([])  # or the key of before would be kept, with its count
            tokens.give([key(rate=rate)])
            await bench.ask(path, framed(request(path)))
            assert rate.taken == 1, path

    with_keys(tmp_path, way, test)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_above_the_rate_is_refused_before_the_message_is_there(tmp_path: Path, way: Way) -> None:
    async def test(bench: Bench, tokens: Tokens) -> None:
        for path in KEYED:
            tokens.give([])
            tokens.give([key(rate=(rate := Rate(0.001)))])
            rate.take(1e12)
            call = await bench.begin(path)
            call.write(BEGUN, end=False)
            assert status_of(await call.answer()) == TOO_MANY, path
            assert bench.held.held == 0
            assert (await bench.line())[2] == NAME, path

    with_keys(tmp_path, way, test)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "aio"])
def test_requests_that_need_no_key_are_counted_apart(tmp_path: Path, way: Way) -> None:
    """grpc.aio counts nothing before it is a message."""

    async def test(bench: Bench, tokens: Tokens) -> None:
        for path in PUBLIC:
            call = await bench.begin(path)
            call.write(BEGUN, end=False)
            await until(lambda: bench.held.public.held == len(BEGUN))
            assert bench.held.held == 0, path
            call.close()
            await until(lambda: bench.held.public.held == 0)

    with_keys(tmp_path, way, test, key())


# -- again with each message --


def withdraw(tokens: Tokens) -> None:
    tokens.give([])


def expire(tokens: Tokens) -> None:
    tokens.check("inference", "Bearer K").until = 1.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", [withdraw, expire])
def test_a_stream_ends_with_its_key(tmp_path: Path, way: Way, end: Callable[[Tokens], None]) -> None:
    assert len(STREAMS) == 2

    async def test(bench: Bench, tokens: Tokens) -> None:
        for path in STREAMS:
            tokens.give([key()])
            call = await bench.begin(path)
            call.write(framed(request(path)), end=False)
            assert len((await call.heard(messages=1)).messages) == 1
            await bench.registry.next_job()
            end(tokens)
            call.write(framed(request(path)), end=False)
            answer = await call.answer()
            assert (status_of(answer), len(answer.messages)) == (REFUSED, 1), path
            line = await bench.line()
            assert (line[2], line[-1]) == (NAME, int(REFUSED))
            assert bench.registry.idle, path

    with_keys(tmp_path, way, test)


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_goes_on_with_what_its_key_allows_now(tmp_path: Path, way: Way) -> None:
    async def test(bench: Bench, tokens: Tokens) -> None:
        for path in STREAMS:
            tokens.give([key()])
            call = await bench.begin(path)
            call.write(framed(request(path)), end=False)
            await call.heard(messages=1)
            await bench.registry.next_job()
            tokens.give([key(models=frozenset({"other"}))])
            call.write(framed(request(path)), end=False)
            answer = await call.heard(messages=2)
            assert b"is not for model m" in answer.messages[1], path
            tokens.give([key(rate=Rate(100))])
            call.write(framed(request(path)))
            answer = await call.answer()
            assert (status_of(answer), len(answer.messages)) == ("0", 3), path
            await bench.registry.next_job()

    with_keys(tmp_path, way, test)
