"""The limits that a REST port has over HTTP/2."""

from __future__ import annotations

from msx_frontend.net.connections.limits import ConnectionLimits
from msx_frontend.net.http.v2.connection import KEPT_HEADS, LONGEST_HEAD
from msx_frontend.net.http.v2.listener import http2_limits
from msx_frontend.net.http2.limits import LARGEST_WINDOW
from tests.unit.frontend.net.http.client import FakeAccessLog, FakeRegistry, answer
from tests.unit.frontend.net.http.exchanges import exchange_of, predictions
from tests.unit.frontend.net.http.v2.client import Client, head
from tests.unit.frontend.net.http2.peer import in_loop


def test_a_whole_message_of_grpc_fits() -> None:
    limits = http2_limits(ConnectionLimits(), 6_553_500)
    assert limits.stream_window == 2 * (6_553_500 + 5)
    assert limits.max_held >= 4 * limits.stream_window
    assert http2_limits(ConnectionLimits(), 1 << 40).stream_window <= LARGEST_WINDOW


@in_loop
async def test_a_head_that_is_too_large_is_answered_with_a_sentence() -> None:
    limits = http2_limits(ConnectionLimits(max_request_head_size=2000), 1000)
    registry = FakeRegistry()
    client = Client(exchange_of(predictions(registry), log=FakeAccessLog()), direct=True, limits=limits)
    client.begin(1, head("POST", "/predictions/m", x_large="x" * 2000), b"")
    reply = await client.whole(1)
    assert (reply.status, reply.headers["content-type"]) == (431, "application/json")
    assert b"max_request_head_size (2000 bytes)" in reply.body
    assert not client.transport.closed


@in_loop
async def test_how_many_heads_a_connection_keeps() -> None:
    """And none that is long."""
    registry = FakeRegistry()
    limits = http2_limits(ConnectionLimits(), 1000)
    client = Client(exchange_of(predictions(registry), log=FakeAccessLog()), direct=True, limits=limits)
    for number in range(3 * KEPT_HEADS):
        fields = head("POST", "/predictions/m", x_number=str(number), x_long="x" * (LONGEST_HEAD * (number % 2)))
        client.begin(2 * number + 1, fields, b"")
        answer(await registry.next_job(), b"ok")
        assert (await client.whole(2 * number + 1)).status == 200
    kept = client.connection._kept
    assert 0 < len(kept) <= KEPT_HEADS
    assert max(sum(len(name) + len(value) for name, value in fields) for _, fields in kept.values()) <= LONGEST_HEAD
