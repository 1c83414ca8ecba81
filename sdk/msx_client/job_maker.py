"""The calls of jobs, for both clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msx_client.errors import NotServedError

if TYPE_CHECKING:
    from msx_client.address import Part
    from msx_client.call import HttpCall, Reply
    from msx_client.http.calls import HttpCalls
    from msx_client.http.job_calls import JobCalls

ENDED = ("done", "cancelled")
"""States in which a job stays."""
LONGEST_LOOK = 30.0
"""Seconds that one call waits for the end of a job at most."""
FOREVER = 1e9
"""Seconds."""
PAGE = 100
"""Jobs of a page of a list."""


class Deferral(NamedTuple):
    """The call that makes a job, and the reader of its reply."""

    call: HttpCall[str]
    read: Callable[[Reply], Any]


class JobMaker:
    """Methods raise NotServedError over gRPC. The library of HTTP is imported by the first one."""

    def __init__(self, calls: HttpCalls, part: Part, *, grpc: bool, timeout: float) -> None:
        """`timeout`: seconds that the server may be silent."""
        self._calls, self._part, self._grpc = calls, part, grpc
        self.longest_look = min(LONGEST_LOOK, timeout / 2)
        """Seconds that one call waits for the end of a job."""

    @property
    def jobs(self) -> JobCalls:
        if self._grpc:
            raise NotServedError("Jobs are made over HTTP: give the client an address that begins with http.")
        from msx_client.http.job_calls import JobCalls

        return JobCalls(self._part)

    def predict(
        self, model: str, data: Any, version: str | None, method: str | None, headers: Mapping[str, str], more: Marks
    ) -> Deferral:
        return self._deferral(lambda: self._calls.predict(model, data, version, method, headers), more)

    def generate(self, model: str, prompt: str, options: Mapping[str, Any], more: Marks) -> Deferral:
        return self._deferral(lambda: self._calls.generate(model, prompt, options), more, options)

    def chat(
        self, model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], more: Marks
    ) -> Deferral:
        return self._deferral(lambda: self._calls.chat(model, messages, options), more, options)

    def _deferral(
        self, make: Callable[[], HttpCall[Any]], more: Marks, options: Mapping[str, Any] | None = None
    ) -> Deferral:
        assert self.jobs
        from msx_client.http.content import decode
        from msx_client.http.job_calls import deferred

        call = make()
        streams = bool(options and options.get("stream"))
        return Deferral(deferred(call, more.callback, more.idempotency_key), decode if streams else call.read or decode)


class Marks(NamedTuple):
    """`callback`: the URL that is told of the end; `idempotency_key`: the same again is the same job."""

    callback: str | None
    idempotency_key: str | None


def last_of(page: Mapping[str, Any]) -> str:
    """`after` of the next page of a list; "" behind the last one."""
    return str(page.get("next") or "")


def content_of(reply: Reply) -> bytes:
    return reply.content
