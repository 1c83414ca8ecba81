"""Routes of text APIs, as routes of jobs: the connection itself answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msx_frontend.generation.errors import FirstLoading
from msx_frontend.generation.images.finder import ImagesWanted
from msx_frontend.generation.text_request import LARGE, ReadFirst, TextApi, TextRequest, owner_of
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.metrics.timed_sink import TimedSink, asks_for_timing
from msx_net.http.family import JobRoute, JobTemplate, Names, ReplySink
from msx_net.http.head import Head
from msx_net.keys import ClientKey


class TextReply(Protocol):
    """Reply of a route, which decides which jobs a request needs and how their answers are written."""

    def begin(self, request: TextRequest) -> None:
        """Submit the jobs. Raises ServiceError if they cannot be queued."""


Answer = Callable[[TextRequest], TextReply]
"""Decodes and checks a request. Raises ServiceError."""


def text_route(api: TextApi, answer: Answer) -> JobRoute:
    def template(head: Head, names: Names) -> JobTemplate:
        return TextTemplate(api, answer, head, names)

    return JobRoute(template)


class TextTemplate:
    """Parts of a text request's jobs that its head decides."""

    __slots__ = ("_answer", "_api", "_headers", "_path", "_timed", "asker", "key")

    def __init__(self, api: TextApi, answer: Answer, head: Head, names: Names) -> None:
        self._api, self._answer, self._path = api, answer, names
        self._headers = KeptHeaders(head.headers())
        self._timed = asks_for_timing(head.raw_headers)
        self.key: ClientKey | None = None
        self.asker: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        own = TimedSink(sink) if self._timed else sink
        owner, asker = owner_of(self.asker), self.asker
        request = TextRequest(self._api, id, body, self._path, self._headers, self.key, own, owner, sink.hold, asker)
        sink.job = request
        if len(body) > LARGE:
            _in_a_turn_of_its_own(request, partial(self._begin, request))
            return
        try:
            self._begin(request)
        except Exception as error:
            request.cancel()
            raise request.client_error(error) from None

    def _begin(self, request: TextRequest) -> None:
        try:
            reply = self._answer(request)
        except FirstLoading as error:
            request.wait_for_load(error.version, partial(_begin_late, request, partial(self._begin, request)))
            return
        except ReadFirst as first:
            request.after(first.work, partial(_begin_late, request, partial(self._begin, request)))
            return
        except ImagesWanted as wanted:
            request.prepare_images(wanted.sources, partial(_begin_late, request, partial(self._begin, request)))
            return
        if len(request.body) > LARGE:
            _in_a_turn_of_its_own(request, partial(reply.begin, request))
        else:
            reply.begin(request)


def _in_a_turn_of_its_own(request: TextRequest, begin: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(_begin_late, request, begin)


def _begin_late(request: TextRequest, begin: Callable[[], None]) -> None:
    """Begins nothing for a client that has left meanwhile."""
    try:
        request.check_stays()
        begin()
    except Exception as error:
        request.fail(error)
