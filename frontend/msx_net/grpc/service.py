"""A gRPC service as a value: described once, served directly or by grpc.aio."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from msx_core.held_bytes import HeldBytes
from msx_core.replies.sink import Cancellable, Sink
from msx_core.service_errors import ServiceError
from msx_net.grpc.codes import Code
from msx_net.grpc.context import CallContext, LogsCalls
from msx_net.grpc.messages import POOL
from msx_net.grpc.status import sentence, standard_code
from msx_net.grpc.unary_reply import UnaryReply
from msx_net.keys import Kind

Answer = Callable[[Any, CallContext], Awaitable[Any]]
"""Takes the request (an iterator of them for a client's stream); returns the response, or writes a stream of them.

Streams are written with `context.write` rather than yielded: a coroutine hears at once that its client left.
"""

CodeOf = Callable[[ServiceError], Code]
DetailsOf = Callable[[ServiceError], str]
ListenerName = Literal["inference", "management"]


class JobMethod(NamedTuple):
    """A unary method whose response is the answer of one job, so that it needs no coroutine."""

    submit: Callable[[Any, str, float | None, Sink], Cancellable]
    """Job of a request, its id, its deadline, and the sink of the answer; or several jobs. Raises ServiceError."""
    response: Callable[[bytes], Any]
    """Response from all output of the job."""
    limit: int
    """Bytes of that."""
    held: HeldBytes
    """Counts the request while its job waits and runs."""
    encoded: bool = False
    """The response is the bytes of its message."""


class Rpc(NamedTuple):
    """Method of a service."""

    answer: Answer | JobMethod
    key: Kind | None = "inference"
    """The kind of key that opens the method. None: it is public."""
    model: str = ""
    """The field of a request that names the model, which the key must be good for, or the path to it (`spec.name`);
    "" where requests have none."""


class Method(NamedTuple):
    service: str
    name: str
    client_streams: bool
    server_streams: bool
    parse: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    answer: Answer
    job: JobMethod | None = None
    key: Kind | None = "inference"
    model: str = ""

    def model_of(self, request: Any) -> str:
        """The model that a request names; "" where it names none."""
        return attrgetter(self.model)(request) if self.model else ""

    @property
    def target(self) -> str:
        return f"{self.service}/{self.name}"


class Service(NamedTuple):
    name: str
    methods: tuple[Method, ...]
    code_of: CodeOf = standard_code
    details_of: DetailsOf = sentence
    access_log: LogsCalls | None = None
    listener: ListenerName = "inference"


def describe(
    name: str,
    methods: Mapping[str, Rpc],
    *,
    code_of: CodeOf = standard_code,
    details_of: DetailsOf = sentence,
    access_log: LogsCalls | None = None,
    listener: ListenerName = "inference",
) -> Service:
    """Every method of the service, by its descriptor. Raises KeyError for one that `methods` lacks."""
    found = tuple(_method(one, methods[one.name]) for one in POOL.FindServiceByName(name).methods)
    return Service(name, found, code_of=code_of, details_of=details_of, access_log=access_log, listener=listener)


def limited(service: Service, limit: int) -> Service:
    """The same service, for a listener whose responses have `limit` bytes at most."""
    return service._replace(methods=tuple(_limited(one, limit) for one in service.methods))


def _limited(method: Method, limit: int) -> Method:
    if method.job is None:
        return method
    job = method.job._replace(limit=limit)
    return method._replace(job=job, answer=partial(_answer_by_job, job))


def _method(method: MethodDescriptor, rpc: Rpc) -> Method:
    job = rpc.answer if isinstance(rpc.answer, JobMethod) else None
    answer = partial(_answer_by_job, rpc.answer) if isinstance(rpc.answer, JobMethod) else rpc.answer
    return Method(
        service=method.containing_service.full_name,
        name=method.name,
        client_streams=method.client_streaming,
        server_streams=method.server_streaming,
        parse=GetMessageClass(method.input_type).FromString,
        serialize=bytes if job is not None and job.encoded else GetMessageClass(method.output_type).SerializeToString,
        answer=answer,
        job=job,
        key=rpc.key,
        model=rpc.model,
    )


async def _answer_by_job(method: JobMethod, request: Any, context: CallContext) -> Any:
    """Where a coroutine has to answer: a transport does not know jobs, or the request was compressed."""
    answer = UnaryReply(method.limit)
    admitted = context.admitted
    answer.priority, answer.trace, answer.session = admitted.priority, admitted.trace, admitted.session
    with method.held.hold(request.ByteSize()):
        job = method.submit(request, admitted.id, context.deadline, answer)
        try:
            await answer.ended
            return method.response(answer.data())
        finally:
            job.cancel()  # unless it has ended
