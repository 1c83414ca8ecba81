"""The rules that the conformance suite h2spec checks, each on a connection of its own, over clear text and TLS:
the framing alone, and a REST port.

The cases are our own, named by the sections of RFC 7540 and RFC 7541 that h2spec names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.conformance.http2.cases import beginning, compression, frames, generic, messages, streams, windows
from tests.conformance.http2.script import Case
from tests.conformance.http2.targets import TARGETS, Target, play

CASES = [
    *beginning.CASES,
    *streams.CASES,
    *frames.CASES,
    *windows.CASES,
    *messages.CASES,
    *compression.CASES,
    *generic.CASES,
]

DROPPED = {
    "3.2": "HTTP/1.1's Upgrade to h2c: gone with RFC 9113 (appendix B); clear text needs prior knowledge (§3.3).",
}
"""Sections whose cases have no place in RFC 9113, and why."""


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[Target]:
    """One server for all cases."""
    target = TARGETS[request.param]()
    loop.run_until_complete(target.start())
    yield target
    loop.run_until_complete(target.stop())


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_h2spec(case: Case, target: Target, loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(play(case, target))


def test_no_case_stands_twice() -> None:
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)
    assert not {case.section for case in CASES} & set(DROPPED)
