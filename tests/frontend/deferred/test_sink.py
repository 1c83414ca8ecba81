"""The sink of a job's reply: what it counts, and what it bounds."""

from __future__ import annotations

import gzip
from typing import Any, cast

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import ServiceError
from msx_frontend.deferred.records import LateReply
from msx_frontend.deferred.sink import LateSink, SinkLimits
from msx_net.http.family import JSON, Failure
from msx_net.http.known_head import KnownHead
from tests.loops import run, until

SIZE = 5000


class Known:
    """The part of a KnownHead that a sink without a stream reads."""

    @property
    def family(self) -> Any:
        return self

    def failure(self, error: ServiceError) -> Failure:
        return Failure(error.status, error.message.encode(), [*JSON])


def test_an_unpacked_body_is_bounded_and_held_as_a_request_is() -> None:
    async def test() -> None:
        held, replies, bodies = HeldBytes(), list[LateReply](), list[bytes]()

        def sink(limits: SinkLimits) -> LateSink:
            known = cast(KnownHead, Known())
            made = LateSink("x", known, held.hold(), limits, lambda reply, error: replies.append(reply), lambda: None)
            made.unpack(gzip.compress(b" " * SIZE), "gzip", bodies.append)
            return made

        open_still = sink(SinkLimits(request=SIZE, stream=10))
        await until(lambda: bodies)
        assert (bodies, held.held) == ([b" " * SIZE], SIZE)
        open_still.answer(200, "", [], b"")
        assert held.held == 0
        sink(SinkLimits(request=SIZE - 1, stream=1 << 20))
        await until(lambda: len(replies) == 2)
        assert replies[1].status == 413
        assert f"larger than max_request_size ({SIZE - 1} bytes)" in replies[1].body.decode()

    run(test())
