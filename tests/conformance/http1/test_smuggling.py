"""Each case in one piece and byte by byte: no second request is ever made of the first."""

from __future__ import annotations

import asyncio
import re

import pytest

from msx_frontend.job import Job
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from tests.conformance.http1.cases import CASES, PIPELINES, Case
from tests.frontend.net.predictions import FakeRegistry, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.direct_client import FakeTransport, connect
from tests.net.http.exchanges import exchange_of


class Served:
    """A connection of a listener; jobs are answered at once, and `/smuggled` by the app."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.smuggled = 0
        registry = FakeRegistry()
        registry.submit = self._answer  # type: ignore[method-assign]
        smuggled = Family("smuggled", (Route("GET", "/smuggled", self._show),), torchserve_failure)
        edge = exchange_of(predictions(registry), smuggled, log=FakeAccessLog(), limit=100_000)
        self.connection, self.transport = connect(edge, edge.direct())

    def _answer(self, job: Job) -> None:
        self.bodies.append(bytes(job.fields[0].data))
        assert "z" not in dict(job.headers).values(), "a trailer is not a header"
        job.answer(200, "", [], b"ok")

    async def _show(self, request: Request) -> Reply:
        self.smuggled += 1
        return Reply(b"shown", headers=())

    async def send(self, *parts: bytes) -> None:
        """Bytes that come when the connection is closed are lost, as on a socket."""
        for part in parts:
            if not self.transport.closed:
                self.connection.data_received(part)
        for _ in range(20):
            await asyncio.sleep(0)
        self.connection.connection_lost(None)


def statuses(transport: FakeTransport) -> tuple[int, ...]:
    return tuple(int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", transport.written))


def check(case: Case, *parts: bytes) -> None:
    async def test() -> Served:
        served = Served()
        await served.send(*parts)
        return served

    served = run(test())
    assert statuses(served.transport) == case.statuses
    assert tuple(served.bodies) == case.bodies
    assert served.smuggled == int(case.smuggled)
    if case.statuses[-1] >= 400:
        assert served.transport.closed or served.transport.ended


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_in_one_piece(case: Case) -> None:
    check(case, case.sent)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_byte_by_byte(case: Case) -> None:
    check(case, *(case.sent[at : at + 1] for at in range(len(case.sent))))


@pytest.mark.parametrize("case", PIPELINES, ids=lambda case: case.name)
def test_a_pipeline_split_at_each_byte(case: Case) -> None:
    for cut in range(1, len(case.sent)):
        check(case, case.sent[:cut], case.sent[cut:])
