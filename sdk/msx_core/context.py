"""The context of a handler: its model, its rank and the requests of the call."""

from __future__ import annotations

import contextvars
import copy
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from msx_core.batch import Batch, current_request_ids
from msx_core.handler_metrics import Metrics
from msx_core.leading import Leading
from msx_core.methods import method_of
from msx_core.model_info import ModelInfo
from msx_core.reply_head import CONTENT_TYPE, ReplyHead
from msx_core.request import Headers
from msx_core.request_processor import RequestProcessor
from msx_core.tracing.current import ENABLED as TRACED
from msx_core.tracing.current import work_on

__all__ = ["Context", "ModelInfo", "NoRequestError"]

P = ParamSpec("P")
T = TypeVar("T")


class NoRequestError(RuntimeError):
    """The context was asked about a request outside of handle()."""


class Context:
    """TorchServe's context, and what a rank of a parallel model and a cancellable request need besides.

    Methods that take `idx` speak of the request at that place of the batch. An async handler has one request
    per call: index 0.
    """

    # The batch alone is not in __dict__, so that the contexts of two calls can share everything else.
    __slots__ = ("__dict__", "_batch")

    _batch: Batch | None

    def __init__(self, info: ModelInfo, metrics: Metrics | None = None, model_thread: Executor | None = None) -> None:
        self.info = info
        self.model_name = info.model_name
        self.model_version = info.model_version
        self.model_dir = info.model_dir
        self.manifest = info.manifest
        self.model_yaml_config = info.config
        self.device_id = info.device_id
        self.rank, self.local_rank, self.world_size = info.rank, info.local_rank, info.world_size
        self.worker_id = info.place + 1
        self.metrics = metrics or Metrics(info.model_name)
        self.system_properties: dict[str, Any] = _system_properties(info)
        keys = info.sequence_keys
        self.header_key_sequence_id, self.header_key_sequence_start, self.header_key_sequence_end = keys
        self.cache: Any = {}
        """Memory of the handler, kept from call to call, such as the state of sequences and of generations in progress.
        With `continuousBatching`, the entry under a request's id is removed with the request."""
        self.stopping_criteria: Any = None
        """Set by a continuous handler: a function for each request of the batch. It is called with what the handler
        returned for the request; False means that more is to come, anything else that it was the last."""
        self.cl_socket: Any = None  # TorchServe's handlers may look at it; nothing is sent on it here
        self.graphs_key = ""
        """Set by a handler before `setup`: what kept graphs (`mindspore.compileCache`) depend on besides the archive.
        With it graphs are kept, unless the yaml says otherwise."""
        self.report_progress: Callable[[str], None] = lambda phase: None
        self.lead: Callable[[bytes], Leading] = lambda message: Leading()
        """Lead the other ranks, in async handlers on rank 0 of a group: `with context.lead(message):` makes the
        handlers of all other ranks call `follow(message)`, in the order of these messages, while the block does rank
        0's part."""
        self._flush: Callable[[], None] = lambda: None
        """Sends, for engines, what `_offer` has taken, of all calls."""
        self._model_thread = model_thread
        self._batch = None

    # -- the requests of this call --

    @property
    def request_ids(self) -> dict[int, str]:
        """Request ids by index in the batch."""
        return {idx: request.id for idx, request in enumerate(self._bound.requests)}

    def get_request_id(self, idx: int = 0) -> str:
        return self._bound.requests[idx].id

    def get_request_header(self, idx: int, key: str) -> Any:
        """The header's text, or None. For the name of a field it returns what TorchServe has there: `{"content-type":
        …}`, if the field has one."""
        return self._bound.requests[idx].headers.get(key)

    def get_all_request_header(self, idx: int) -> Headers:
        return self._bound.requests[idx].headers

    def field_type(self, idx: int = 0, field: str = "body") -> str | None:
        """The content type of a field, as the client stated it; "" where it stated none, though it could have.

        None for a field that has no place for one: an input over gRPC, a plain field of a form, a query's parameter.
        """
        part = self._bound.requests[idx].parts.get(field)
        return None if part is None else part.content_type

    def get_sequence_id(self, idx: int) -> str:
        """The id of the sequence of a stateful model to which the request belongs; "" without one."""
        value = self.get_request_header(idx, self.header_key_sequence_id)
        return value if isinstance(value, str) else ""  # a form field may have the same name

    @property
    def request_processor(self) -> list[RequestProcessor]:
        """TorchServe's older interface: an object for each request."""
        return [RequestProcessor(self, idx) for idx in range(len(self._bound.requests))]

    def operation(self, idx: int = 0) -> str:
        """The operation: "" for a prediction, an operation of `msx_core.generation`, or one that names a method."""
        return self._bound.requests[idx].operation

    @property
    def method(self) -> str:
        """The method that the requests of this call ask for; "" for the handler's own `handle`."""
        return method_of(self.operation())

    def is_example(self, idx: int = 0) -> bool:
        """True during warm-up, for the handler's own example."""
        return self._bound.requests[idx].is_example

    def cancelled(self, idx: int = 0) -> bool:
        """True once this request was cancelled: its client does not wait for the answer any more."""
        return self._bound.requests[idx].cancelled

    def deadline(self, idx: int = 0) -> float | None:
        """The `time.monotonic()` instant after which the client is answered with an error, or None."""
        return self._bound.requests[idx].deadline

    # -- their responses: to be set before the first value of a request is returned, yielded or sent. What HTTP does not
    # allow is logged, and fails that request with 500, not the others of its batch --

    def set_response_content_type(self, idx: int, value: str) -> None:
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        return self.get_response_headers(idx).get("content-type")

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """A second value for the same name replaces the first."""
        head = self._head(idx)
        refused = head.refused
        head.set_header(key, value)
        self._tell(head, refused)
        if head.has_events and str(key).lower() == CONTENT_TYPE:
            self._bound.expect_events(idx)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        return dict(self._head(idx).headers or [])

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """A final status (200 to 599), and a phrase for the status line of HTTP/1.1; "" is the usual one."""
        head = self._head(idx)
        refused = head.refused
        head.set_status(code, phrase)
        self._tell(head, refused)

    def get_response_status(self, idx: int) -> tuple[int, str]:
        head = self._head(idx)
        return head.status, head.phrase

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        for idx in range(len(self._bound.requests)):
            self.set_response_status(code, phrase, idx)

    def send(self, values: list[Any]) -> None:
        """Send intermediate results now, one entry a request; None sends nothing for that request.

        From any thread. What is sent for a request that has ended or was cancelled is dropped. While all clients of the
        batch are slow the call waits; not in async and continuous handlers, and not in a parallel group.
        """
        batch = self._bound
        if batch.blocks:
            batch.wait()
        batch.send(values)

    @property
    def _offer(self) -> Callable[[bytes], bool]:
        """Takes what `_flush` sends, unless the client of this call is slow: for engines whose async generator waits at
        its own `await`. Any thread may call it."""
        return self._bound.offer

    async def drain(self) -> None:
        """Wait, in async handlers after `send`, while the client is slow to take what was sent before.

        An async generator need not call it: it waits at its `yield`.
        """
        await self._bound.drain()

    # -- large values between stages --

    def output(self, shape: tuple[int, ...] | int, dtype: Any = "float32", idx: int = 0) -> Any:
        """A NumPy array for the reply of a stage to request `idx`, whose numbers are not set. Where it is larger than
        64 KiB it stands in memory that the next stage shares: returned, also within a dict or list, it is not copied.
        """
        import numpy as np

        shape, shared = (shape,) if isinstance(shape, int) else tuple(shape), self._bound.requests[idx].shared
        return np.empty(shape, dtype) if shared is None else shared.output(shape, dtype)

    def writable(self, idx: int = 0) -> dict[str, Any]:
        """The inputs of this request with arrays that may be written: large ones of the stage before cannot be."""
        return self._bound.requests[idx].writable()

    # -- tools --

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """Logs under the model's name; every line carries the ids of this call's requests, from any thread."""
        ids = self._batch.ids if self._batch else ""
        return logging.LoggerAdapter(logging.getLogger(f"msx.handler.{self.model_name}"), {"request_id": ids})

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call on the one model thread, so that an async handler's loop stays free."""
        from asyncio import get_running_loop  # is there, where this runs; others need not wait for it

        loop = get_running_loop()
        variables = contextvars.copy_context()
        return await loop.run_in_executor(self._model_thread, partial(variables.run, call, *args, **kwargs))

    def bind(self, batch: Batch | None) -> None:
        """Describe `batch` from now on. The runner calls it."""
        self._batch = batch
        current_request_ids.set("" if batch is None else batch.ids)
        if TRACED:
            work_on(() if batch is None else batch.requests)

    def for_batch(self, batch: Batch) -> Context:
        """Make the context of one call. The runner calls it.

        It shares every attribute with this one, but always describes its own batch: a thread that outlives its
        call cannot reach the next batch.
        """
        self.bind(batch)
        context = object.__new__(type(self))
        context.__dict__ = self.__dict__
        context._batch = batch
        return context

    def for_call(self, batch: Batch) -> Context:
        """Make a context with attributes of its own, for one of several calls that run at once. The runner calls it."""
        context = copy.copy(self)
        context.bind(batch)
        return context

    @property
    def _bound(self) -> Batch:
        if self._batch is None:
            raise NoRequestError("the context has no request now: this is only known while handle() runs")
        return self._batch

    def _head(self, idx: int) -> ReplyHead:
        return self._bound.head(idx)

    def _tell(self, head: ReplyHead, refused: str) -> None:
        """Logs the reason, once, for which a head became invalid."""
        if head.refused != refused:
            self.logger.error("%s", head.refused)


def _system_properties(info: ModelInfo) -> dict[str, Any]:
    return {
        "model_dir": str(info.model_dir),
        "gpu_id": info.device_id,
        "npu_id": info.device_id,
        "batch_size": info.batch_size,
        "server_name": "MMS",  # TorchServe's, which handlers may ask for
        "server_version": info.server_version,
        "limit_max_image_pixels": info.limit_max_image_pixels,
    }
