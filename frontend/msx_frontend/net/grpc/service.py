"""A gRPC service as it is described once, and served by grpc.aio or directly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from msx_frontend.errors import ServiceError
from msx_frontend.job import Job, Sink
from msx_frontend.net.grpc.admission import Admission
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.context import Context, LogsCalls
from msx_frontend.net.grpc.messages import POOL
from msx_frontend.net.grpc.status import details, standard_code

Answer = Callable[[Any, Context], Awaitable[Any]]
"""Takes the request (an iterator of them for a client's stream); returns the response, or writes a stream of them.

Streams are written with `context.write` rather than yielded: a coroutine hears at once that its client left.
"""

CodeOf = Callable[[ServiceError], Code]
DetailsOf = Callable[[ServiceError], str]


class JobMethod(NamedTuple):
    """A unary method whose response is the answer of one job, so that it needs no coroutine."""

    admission: Admission
    submit: Callable[[Any, str, float | None, Sink], Job]
    """Of the request, its id, its deadline, and where the answer goes. Raises ServiceError."""
    response: Callable[[bytes], Any]
    """Of all that the job said."""
    limit: int
    """Bytes of that."""


class Method(NamedTuple):
    service: str
    name: str
    client_streams: bool
    server_streams: bool
    parse: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    answer: Answer
    job: JobMethod | None = None

    @property
    def target(self) -> str:
        return f"{self.service}/{self.name}"


class Service(NamedTuple):
    name: str
    methods: tuple[Method, ...]
    code_of: CodeOf = standard_code
    details_of: DetailsOf = details
    access_log: LogsCalls | None = None


def describe(
    name: str,
    answers: Mapping[str, Answer],
    *,
    jobs: Mapping[str, JobMethod] | None = None,
    code_of: CodeOf = standard_code,
    details_of: DetailsOf = details,
    access_log: LogsCalls | None = None,
) -> Service:
    """Every method of the service, by its descriptor. Raises KeyError for one that `answers` lacks."""
    found = POOL.FindServiceByName(name).methods
    methods = (_method(one, answers[one.name], (jobs or {}).get(one.name)) for one in found)
    return Service(name, tuple(methods), code_of, details_of, access_log)


def _method(method: MethodDescriptor, answer: Answer, job: JobMethod | None) -> Method:
    return Method(
        method.containing_service.full_name,
        method.name,
        method.client_streaming,
        method.server_streaming,
        GetMessageClass(method.input_type).FromString,
        GetMessageClass(method.output_type).SerializeToString,
        answer,
        job,
    )
