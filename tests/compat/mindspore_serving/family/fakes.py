"""Servables whose workers are functions: `add` (x1, x2 -> y), and `any`, whose method takes and returns anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from msx_core.methods import MethodInfo, Methods
from msx_core.non_finite import NonFinite
from msx_core.packed import OneBytes, OneText, Tensor, pack, unpack
from msx_core.priorities import NORMAL
from msx_core.replies.sink import Cancellable
from msx_core.service_errors import HandlerFailed, ModelNotFound, ServiceError
from msx_frontend.job import Job
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.queueing.instances import InstanceRequest
from msx_mindspore_serving.family.grpc.service import mindspore_serving_service
from msx_mindspore_serving.family.rest_call import serving_route
from msx_mindspore_serving.family.servables import Servables
from msx_net.grpc.messages import message_class
from msx_net.http.head import Head

Values = dict[str, Any]
Function = Callable[[Values], Any]

MOST_INSTANCES = 1000

Request = message_class("mindspore.serving.proto.PredictRequest")
Reply = message_class("mindspore.serving.proto.PredictReply")
TensorMessage = message_class("mindspore.serving.proto.Tensor")


class FakeVersion:
    def __init__(self, name: str, version: str, methods: Methods | None, *, ready: int = 1) -> None:
        self.source = SimpleNamespace(name=name, version=version)
        self.config = SimpleNamespace(max_enqueued_instances=MOST_INSTANCES)
        self.schema, self.workers = SimpleNamespace(methods=methods), SimpleNamespace(answer=ready > 0)
        self.serving = True
        self.metrics = SimpleNamespace(non_finite=NonFinite(self._count))
        self.non_finite = 0

    def _count(self) -> None:
        self.non_finite += 1


def same(values: Values) -> Values:
    return values


class FakeServables:
    """`refusal` is raised instead of taking a request; `held` keeps jobs instead of answering them."""

    def __init__(self, function: Function = same) -> None:
        self.function = function
        self.refusal: ServiceError | None = None
        self.held: list[Job] | None = None
        self.seen: list[Values] = []
        self.priorities: list[int] = []
        self.asked: list[tuple[str | None, str]] = []
        self.enqueued = EnqueuedRequests(100)
        add = MethodInfo(name="add", inputs=("x1", "x2"), outputs=("y",))
        free = MethodInfo(name="same")
        self.versions = [FakeVersion("add", "1", (add, free)), FakeVersion("any", "1.0", (free,))]

    # -- what the registry has --

    def versions_of(self, name: str) -> list[FakeVersion]:
        found = [one for one in self.versions if one.source.name == name]
        if not found:
            raise ModelNotFound(name)
        return found

    def find(self, name: str) -> FakeVersion:
        return self.versions_of(name)[0]

    def submit_instances(self, request: InstanceRequest) -> None:
        if self.refusal is not None:
            raise self.refusal
        request.enter()
        self.priorities.append(request.priority)
        for job in [request.take() for _ in range(request.size)]:
            self._take(job)

    def _take(self, job: Job) -> None:
        self.asked.append((job.version, job.kind))
        self.seen.append({field.name: unpack(field.data, lambda tensor: tensor) for field in job.fields})
        if self.held is not None:
            self.held.append(job)
        else:
            self.answer(job, self.seen[-1])

    def answer(self, job: Job, values: Values) -> None:
        try:
            job.answer(200, "", [], pack(self.function(values)))
        except HandlerFailed as error:
            job.fail(error)

    @property
    def servables(self) -> Servables:
        registry: Any = self
        return Servables(registry)


class KeptReply:
    """The sink of a request."""

    def __init__(self) -> None:
        self.job: Cancellable | None = None
        self.data: bytes | None = None
        self.status, self.priority = 0, NORMAL
        self.error: ServiceError | None = None
        self.told = asyncio.Event()

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        raise AssertionError("replies are whole")

    def chunk(self, data: bytes) -> None:
        raise AssertionError("replies are whole")

    def end(self) -> None:
        raise AssertionError("replies are whole")

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        assert self.data is None
        assert self.error is None
        self.status, self.data = status, data
        self.told.set()

    def hold(self, size: int) -> None:
        raise AssertionError("nothing is fetched")

    def unpack(self, body: bytes, encoding: str, then: Callable[[bytes], None]) -> None:
        raise NotImplementedError

    def fail(self, error: ServiceError) -> None:
        assert self.data is None
        self.error = error
        self.told.set()


def begin_rest(
    fake: FakeServables,
    body: bytes,
    target: str = "/model/any:same",
    method: str = "POST",
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> KeptReply:
    """Raises ServiceError, as a template does."""
    path, _, query = target.partition("?")
    head = Head(method, path, path.encode(), query.encode(), list(headers), "1.1")
    sink = KeptReply()
    serving_route(fake.servables).template(head, {}).submit("r", body, sink)
    return sink


def ask_rest(fake: FakeServables, document: Any, target: str = "/model/any:same") -> bytes:
    """`document` is bytes, or what JSON can say."""
    body = document if isinstance(document, bytes) else msgspec.json.encode(document)
    reply = begin_rest(fake, body, target)
    assert reply.status == 200
    assert reply.data is not None
    return reply.data


def begin_grpc(fake: FakeServables, request: Any, deadline: float | None = None, priority: int = NORMAL) -> KeptReply:
    method = mindspore_serving_service(fake.servables, 1 << 20).methods[0]
    assert method.job is not None
    sink = KeptReply()
    sink.priority = priority
    sink.job = method.job.submit(request, "r", deadline, sink)
    return sink


def request_of(*instances: dict[str, Any], name: str = "any", method: str = "same", version: int = 0) -> Any:
    """`instances` have messages of tensors."""
    request = Request(servable_spec={"name": name, "method_name": method, "version_number": version})
    for instance in instances:
        message = request.instances.add()
        for key, tensor in instance.items():
            message.items[key].CopyFrom(tensor)
    return request


def ask_grpc(
    fake: FakeServables, *instances: dict[str, Any], name: str = "any", method: str = "same", version: int = 0
) -> Any:
    reply = begin_grpc(fake, request_of(*instances, name=name, method=method, version=version))
    assert reply.data is not None
    return Reply.FromString(reply.data)


def told(reply: Any) -> list[tuple[int, str]]:
    return [(one.error_code, one.error_msg.decode()) for one in reply.error_msg]


def plain(value: Any) -> Any:
    """A value as a test writes it: an array as (type, shape, bytes), a text or bytes of shape [1] in a list."""
    if isinstance(value, Tensor):
        return value.dtype, value.shape, bytes(value.data)
    return [value[:]] if isinstance(value, OneText | OneBytes) else value
