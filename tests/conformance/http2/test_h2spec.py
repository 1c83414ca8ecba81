"""The rules that the conformance suite h2spec checks, each on a connection of its own, over clear text and TLS.

The cases are our own, named by the sections of RFC 7540 and RFC 7541 that h2spec names.
"""

from __future__ import annotations

import pytest

from tests.conformance.http2.cases import beginning, compression, frames, generic, messages, streams, windows
from tests.conformance.http2.script import Case
from tests.conformance.http2.targets import TARGETS
from tests.unit.frontend.jobs import run

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


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_h2spec(case: Case, target: str) -> None:
    run(_play(case, target))


async def _play(case: Case, target: str) -> None:
    async with TARGETS[target]() as client:
        await client.play(case)


def test_no_case_stands_twice() -> None:
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)
    assert not {case.section for case in CASES} & set(DROPPED)
