"""Requests over REST: every answer has the status 200."""

from __future__ import annotations

from collections.abc import Sequence

from msx_core.priorities import priority_of
from msx_core.replies.sink import Sink
from msx_core.service_errors import ServiceError
from msx_frontend.plugins.families import InstanceAnswer, InstanceRequest
from msx_mindspore_serving.family.calls import LARGE, MANY, ServingCall
from msx_mindspore_serving.family.errors import ServingError, Spec, error_text
from msx_mindspore_serving.family.json_instances import parse_instances, read_document
from msx_mindspore_serving.family.json_outputs import json_error, json_reply
from msx_mindspore_serving.family.servables import Servables
from msx_mindspore_serving.family.target import parse_target
from msx_mindspore_serving.family.values import readable
from msx_net.http.admission import PRIORITY
from msx_net.http.family import JobRoute, JobTemplate, Names, ReplySink
from msx_net.http.head import Head
from msx_net.http.wire import JSON_HEADERS
from msx_net.keys import ClientKey

ONLY_POST = "http message only support POST right now"

_SMALL = 2048
"""Bytes in which there are not too many instances."""


class RestCall(ServingCall[bytes]):
    __slots__ = ("_non_finite", "_spec")

    def __init__(self, servables: Servables, id: str, sink: Sink, spec: Spec | str) -> None:
        """`spec`, if it is a text, says what is wrong with the request's target."""
        super().__init__(servables, id, sink)
        self._spec = spec
        self._non_finite: str | None = None
        """A place of the reply where JSON has null."""

    def make(self, message: bytes) -> InstanceRequest:
        document = read_document(message)
        spec = self._spec
        if isinstance(spec, str):
            raise ServingError(spec)
        return self.servables.request(self.id, spec, parse_instances(document), readable, self)

    def reply(self, answers: Sequence[InstanceAnswer]) -> bytes:
        data, self._non_finite = json_reply(answers, self._known)
        return data

    def refusal(self, error: ServiceError) -> bytes:
        return json_error(error_text(error, self._known).text)

    def send(self, data: bytes) -> None:
        self.sink.answer(200, "", JSON_HEADERS, data)
        if self._non_finite is not None:
            self.servables.has_non_finite(self._known, self._non_finite)

    @property
    def _known(self) -> Spec:
        return self._spec if isinstance(self._spec, Spec) else Spec("", "")


class ServingTemplate:
    """Servable, method and priority from the head of a request."""

    __slots__ = ("_posts", "_priority", "_servables", "_spec", "key")

    def __init__(self, servables: Servables, head: Head) -> None:
        self._servables, self._posts = servables, head.method == "POST"
        self._spec, self._priority = _spec(head.target), priority_of(head.header(PRIORITY))
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        if not self._posts:
            raise ServingError(ONLY_POST)
        spec = self._spec
        if self.key is not None and isinstance(spec, Spec):
            self.key.check_model(spec.servable)
        call = RestCall(self._servables, id, sink, spec)
        call.priority = self._priority
        sink.job = call
        size = len(body)
        call.begin(body, large=size > LARGE or (size > _SMALL and body.count(b"{") > MANY))


def serving_route(servables: Servables) -> JobRoute:
    def template(head: Head, names: Names) -> JobTemplate:
        return ServingTemplate(servables, head)

    return JobRoute(template)


def _spec(target: str) -> Spec | str:
    try:
        return parse_target(target)
    except ServingError as error:
        return error.message
