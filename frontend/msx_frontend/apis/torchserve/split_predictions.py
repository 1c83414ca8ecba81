"""KServe v1's predictions of models with `splitInstances`: split, submitted and joined; large ones on a thread."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar, cast

from msx_core.replies.stream_credit import StreamCredit
from msx_core.reply_head import JSON_TYPE
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_frontend.apis.torchserve.split_request import LARGE, MANY, SplitBody, first_failure, joined, split
from msx_frontend.job import PREDICT
from msx_frontend.queueing.instances import InstanceAnswer, InstanceReply, InstanceRequest
from msx_net.http.failures import reported
from msx_net.http.family import Headers, ReplySink

T = TypeVar("T")


class SplitsModels(Protocol):
    """The registry."""

    def splits(self, name: str) -> bool:
        """Whether the model's default version has `splitInstances`. Raises ModelNotFound."""

    def submit_instances(self, request: InstanceRequest) -> None:
        """Raises ServiceError when it cannot be taken."""


class SplitPrediction:
    """One request. `whole` submits it as it is, where it has no instances."""

    def __init__(
        self,
        models: SplitsModels,
        id: str,
        model: str,
        headers: Headers,
        sink: ReplySink,
        whole: Callable[[], None],
    ) -> None:
        self._models, self._id, self._model, self._headers = models, id, model, headers
        self._sink, self._whole = sink, whole
        self._left = False

    def begin(self, body: bytes, content_type: str) -> None:
        if len(body) < LARGE:
            return self._submit(split(body, content_type))
        self._sink.job = self
        return self._on_thread(partial(split, body, content_type), self._submit)

    @property
    def credit(self) -> StreamCredit | None:
        return None

    def cancel(self, error: ServiceError | None = None) -> None:
        """While it is split. Idempotent."""
        if not self._left:
            self._left = True
            self._sink.fail(error or RequestCancelled())

    def _submit(self, instances: SplitBody | None) -> None:
        """Raises ServiceError when it cannot be taken."""
        if self._left:
            return
        if instances is None:
            self._whole()
            return
        request = InstanceRequest(
            self._id, self._model, None, instances, cast(list[tuple[str, str]], self._headers), self, kind=PREDICT
        )
        self._sink.job = request
        self._models.submit_instances(request)

    # -- InstancesSink --

    def answered(self, answers: Sequence[InstanceAnswer]) -> None:
        failure = first_failure(answers)
        if isinstance(failure, ServiceError):
            return self._sink.fail(failure)
        if failure is not None:
            return self._sink.answer(*failure)
        replies = cast(Sequence[InstanceReply], answers)
        join, done = partial(joined, replies), partial(self._answer, replies[0])
        if len(replies) > MANY or sum(len(reply.body) for reply in replies) > LARGE:
            return self._on_thread(join, done)
        return self._safely(lambda: done(join()))

    def _answer(self, first: InstanceReply, body: bytes) -> None:
        self._sink.answer(first.status, first.phrase, [JSON_TYPE], body)

    def _on_thread(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        made = asyncio.get_running_loop().run_in_executor(None, work)
        made.add_done_callback(lambda done: self._safely(lambda: then(done.result())))

    def _safely(self, call: Callable[[], None]) -> None:
        """The client is told of each failure, a bug of the server too."""
        try:
            call()
        except Exception as error:
            self._sink.fail(reported(error, self._id))
