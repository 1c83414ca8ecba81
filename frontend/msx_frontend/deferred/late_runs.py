"""Runs of requests whose clients have left, as requests of a listener."""

from __future__ import annotations

import time
from collections.abc import Callable

from msx_core.service_errors import ResourceNotFound, ServiceError
from msx_frontend.deferred.records import Deferred, LateReply, RawHeaders
from msx_frontend.deferred.sink import LateSink, SinkLimits
from msx_net.http.direct import Direct
from msx_net.http.failures import reported
from msx_net.http.job_reply import begin
from msx_net.http.known_head import KnownHead
from msx_net.keys import ClientKey

Ended = Callable[[LateReply, ServiceError | None], None]
KeyOf = Callable[[str], ClientKey | None]


class LateRuns:
    def __init__(self, direct: Direct, limit: int, key_of: KeyOf, client: str) -> None:
        """`limit`: bytes of a stream that is kept; `key_of` the name of a key is that key, or None where none is
        asked for; it raises InvalidKey. `client` stands for a client's address in the access log."""
        self._direct, self._limit, self._key_of, self._client = direct, limit, key_of, client

    def know(self, target: bytes, headers: RawHeaders) -> KnownHead | None:
        """None where no model answers the path."""
        return self._direct.know(b"POST", target, headers, self._client, ("", 0), "1.1")

    def prepare(self, id: str, asked: Deferred, ended: Ended, grew: Callable[[], None]) -> LateSink:
        """The sink of a request that `submit` runs; `ended` and `grew` as LateSink calls them. Raises
        ResourceNotFound where no model answers the path."""
        direct = self._direct
        known = self.know(asked.target, asked.headers)
        if known is None:
            path = asked.target.split(b"?")[0].decode("latin-1")
            raise ResourceNotFound(f"No model answers {path} any more.")

        def logged(reply: LateReply, error: ServiceError | None) -> None:
            direct.write_entry(((*known.asked[:-1], reply.status), id, sink.started, time.monotonic()))
            ended(reply, error)

        limits = SinkLimits(request=direct.limit, stream=self._limit)
        sink = LateSink(id, known, direct.held.hold(), limits, logged, grew)
        return sink

    def submit(self, sink: LateSink, owner: str, body: bytes) -> None:
        """Run the request with the owner's key. What refuses it is its reply."""
        known = sink.known
        try:
            if known.refusal is not None:
                raise known.refusal
            sink.hold(len(body))
            known.use(self._key_of(owner))
        except Exception as error:
            sink.fail(reported(error, sink.id))
        else:
            begin(known.template, sink.id, body, sink)
