"""Any bytes, in any pieces: the connection answers or ends, raises nothing, and holds nothing when it is over."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msx_net.connections.limits import ConnectionLimits
from msx_net.http.direct import Direct
from msx_net.http.exchange import Exchange
from tests.frontend.net.predictions import FakeRegistry, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.direct_client import connect
from tests.net.http.exchanges import exchange_of

LIMITS = ConnectionLimits(max_request_head_size=1024, max_request_headers=10, max_refused_body_size=2000)

FIRST = (b"POST /predictions/m HTTP/1.1\r\n", b"GET /nowhere HTTP/1.1\r\n", b"PUT /predictions/m HTTP/1.0\r\n")
HEADERS = (b"host: x\r\n", b"transfer-encoding: chunked\r\n", b"content-length: 3\r\n", b"content-length: 5000\r\n")
MORE = (b"expect: 100-continue\r\n", b"connection: close\r\n", b"connection: upgrade\r\nupgrade: h2c\r\n", b"x: ")
BODY = (b"3\r\nabc\r\n", b"0\r\n\r\n", b"abc", b"1;x=y\r\n")
OTHERS = (b"\r\n", b"\r", b"\n", b"\x00", b" ", b"\xff", b"x" * 1500)
LINES = st.sampled_from([*FIRST, *HEADERS, *MORE, *BODY, *OTHERS])
GOOD = st.sampled_from(
    [
        b"POST /predictions/m HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
        b"POST /predictions/m HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n",
    ]
)
BYTES = st.lists(LINES | GOOD | st.binary(max_size=20), max_size=20).map(b"".join)
WHAT = st.sampled_from(["look", "answer", "pause", "resume", "shutdown"])
STEPS = st.lists(st.tuples(BYTES, st.integers(1, 400), st.lists(WHAT, max_size=3)), max_size=4)


class Wire:
    """A connection whose jobs wait until a step answers one."""

    def __init__(self, app: Exchange, direct: Direct, registry: FakeRegistry) -> None:
        self._registry = registry
        self.connection, self.transport = connect(app, direct, LIMITS)
        self._now = self.connection.loop.time()

    async def step(self, data: bytes, size: int, then: list[str]) -> None:
        for at in range(0, len(data), size):
            if not self.transport.closed:
                self.connection.data_received(data[at : at + size])
        for one in then:
            getattr(self, f"_{one}")()
            for _ in range(4):
                await asyncio.sleep(0)

    def _look(self) -> None:
        self._now += 9
        self.connection.look(self._now)

    def _answer(self) -> None:
        if not self._registry.idle:
            self._registry._jobs.get_nowait().answer(200, "", [], b"ok")

    def _pause(self) -> None:
        self.connection.pause_writing()

    def _resume(self) -> None:
        self.connection.resume_writing()

    def _shutdown(self) -> None:
        self.connection.shutdown()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_bytes_in_any_pieces(steps: list[tuple[bytes, int, list[str]]], caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> weakref.ref[object]:
        log, registry = FakeAccessLog(), FakeRegistry()
        edge = exchange_of(predictions(registry), log=log, limit=1000)
        wire = Wire(edge, edge.direct(), registry)
        for step in steps:
            await wire.step(*step)
        wire.connection.connection_lost(None)
        for _ in range(20):
            await asyncio.sleep(0)
        assert edge._held.held == 0
        while not registry.idle:
            assert (await registry.next_job()).done
        assert not wire.connection.server_state.tasks
        assert not wire.connection.server_state.connections
        return weakref.ref(wire.connection)

    caplog.clear()
    gone = run(test())
    gc.collect(1)
    if gone() is not None:  # it has become old
        gc.collect()
    assert gone() is None
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
