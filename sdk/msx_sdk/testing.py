"""Run a handler in this process on a list of requests, without a server, by the runner that the worker uses.

Quiet by default: what handlers and MSX log is for a configured `logging` (pytest has one), and MindSpore, where it is
imported after this module, writes errors alone. The variable GLOG_v, where it is set, says otherwise.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from msx_core.batch import Batch
from msx_core.bodies import JSON
from msx_core.continuous import ContinuousRunner
from msx_core.declared import BODY_TYPES, BodyKind
from msx_core.expected_reply import ExpectedReplies
from msx_core.failures import RequestFailure
from msx_core.local_archive import given_files, is_archive, read_config, unpacked
from msx_core.manifest import DEFAULT_VERSION
from msx_core.methods import METHOD
from msx_core.packed import unpack
from msx_core.reply_head import ReplyHead
from msx_core.resolve import resolve_object, resolve_packed
from msx_core.typed.replies import msgpack_bytes, to_json
from msx_core.warmup import warm_up, warm_up_async, warmup_batches
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.runner import AsyncRunner, Runner

__all__ = ["InferenceRequest", "LocalModel", "Part", "Reply"]

for _name in ("msx", "msx_core", "msx_sdk", "msx_backend"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
os.environ.setdefault("GLOG_v", "3")


@dataclass
class Reply:
    """The reply to one request: status, headers, chunks, or the failure."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    complete: bool = False
    failure: RequestFailure | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def msgpack(self) -> Any:
        """Decode a MessagePack reply, with arrays as NumPy's."""
        return unpack(self.body)


class _Collector:
    def __init__(self, requests: Sequence[InferenceRequest]) -> None:
        self.replies = {request.id: Reply() for request in requests}

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        reply = self.replies[request.id]
        if head is not None:
            reply.status, reply.headers = head.status, dict(head.headers or [])
        reply.chunks.append(bytes(body))
        reply.complete = last

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        reply = self.replies[request.id]
        reply.status, reply.failure = failure.status, failure

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


class LocalModel:
    """A handler loaded in this process; a context manager that initialises, warms up and closes it.

    `handler` is an archive (`m.mar`, or its unpacked folder); a handler class, instance, function or module; or the
    handler string of a manifest together with `model_dir`. `weights` and `model_file` stand for what is packed by
    `--serialized-file` and `--model-file`. `config` is that of model-config.yaml, as a mapping or its file; of an
    archive, it goes before the packed one. All calls of an async handler share one loop, as in the worker.
    Raises HandlerLoadError, and for what is wrong with an archive or a file what says so.
    """

    def __init__(
        self,
        handler: Any,
        model_dir: str | Path = ".",
        *,
        config: dict[str, Any] | str | Path | None = None,
        manifest: dict[str, Any] | None = None,
        weights: str | Path | None = None,
        model_file: str | Path | None = None,
        name: str | None = None,
        isolate: bool = True,
    ) -> None:
        settings = read_config(config) if isinstance(config, (str, Path)) else config or {}
        archive = unpacked(Path(handler), self) if is_archive(handler) else None
        directory, manifest = Path(model_dir).resolve(), manifest or {}
        if archive is not None:
            directory, manifest, handler = archive.folder, {**archive.manifest, **manifest}, archive.handler
            settings, name = {**archive.config, **settings}, name or archive.name
        if files := given_files(serializedFile=weights, modelFile=model_file):
            manifest = {**manifest, "model": {**manifest.get("model", {}), **files}}
        version = manifest.get("model", {}).get("modelVersion", DEFAULT_VERSION)
        size = settings.get("batchSize")
        info = ModelInfo(
            name or "local",
            version,
            directory,
            manifest=manifest,
            config=dict(settings),
            batch_size=size if isinstance(size, int) else 1,
        )
        self._model_thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self.context = Context(info, model_thread=self._model_thread)
        self.handler = (
            resolve_packed(handler, directory, manifest) if isinstance(handler, str) else resolve_object(handler)
        )
        self._isolate = isolate

    def __enter__(self) -> LocalModel:
        self._loop = asyncio.new_event_loop()
        try:
            self._finish(self.handler.initialize(self.context))
            self._warm_up()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._finish(self.handler.close())
        finally:
            self._stop()

    def predict(
        self, requests: Sequence[Any], headers: Mapping[str, str] | None = None, *, method: str = ""
    ) -> list[Reply]:
        """Run one batch. A request is a body (bytes, text, what JSON can say, or an object of the handler's type) or an
        InferenceRequest. `method`: the method that the bodies ask for; "" is `handle`.

        An async handler gets each request in a call of its own, all at once.
        """
        operation = f"{METHOD}{method}" if method else ""
        kind: BodyKind | None = self.context.info.config.get("bodies")
        batch = [_request(n, item, headers, operation, kind) for n, item in enumerate(requests)]
        collector = _Collector(batch)
        if self.handler.is_async:
            self._loop.run_until_complete(self._run_async(batch, collector))
        else:
            runner = self._runner()
            runner.run(batch, collector)
            while runner.open:
                runner.run(runner.open, collector)
        return [collector.replies[request.id] for request in batch]

    def _finish(self, result: Any) -> None:
        """Awaits the result of `initialize` or `close` if it is a coroutine."""
        if inspect.isawaitable(result):
            self._loop.run_until_complete(result)

    def _warm_up(self) -> None:
        info = self.context.info
        batches = warmup_batches(self.handler.owner, info.config, info.batch_size)
        expected = ExpectedReplies.of(info.config)
        if self.handler.is_async:
            self._loop.run_until_complete(warm_up_async(AsyncRunner(self.handler, self.context), batches, expected))
        else:
            warm_up(self._runner(), batches, expected)

    def _stop(self) -> None:
        self._model_thread.shutdown()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _runner(self) -> Runner:
        if self.context.model_yaml_config.get("continuousBatching") is True:
            return ContinuousRunner(self.handler, self.context)
        return Runner(self.handler, self.context, isolate=self._isolate)

    async def _run_async(self, batch: list[InferenceRequest], collector: _Collector) -> None:
        runner = AsyncRunner(self.handler, self.context)
        await asyncio.gather(*(runner.run(request, collector) for request in batch))


def _request(
    n: int, item: Any, headers: Mapping[str, str] | None, operation: str, kind: BodyKind | None
) -> InferenceRequest:
    if isinstance(item, InferenceRequest):
        return item
    part = _part(item) if kind is None else _declared_part(item, kind)
    return InferenceRequest(f"local-{n}", {"body": part}, Headers(headers or {}), operation=operation)


def _part(item: Any) -> Part:
    if isinstance(item, (bytes, bytearray)):
        return Part(item)
    if isinstance(item, str):
        return Part(item.encode(), "text/plain")
    return Part(_json(item), JSON)


def _declared_part(item: Any, kind: BodyKind) -> Part:
    """A body of the kind that `bodies:` says."""
    if not isinstance(item, (bytes, bytearray, str)):
        item = msgpack_bytes(item) if kind == "msgpack" else _json(item)
    return Part(item.encode() if isinstance(item, str) else item, BODY_TYPES[kind])


def _json(item: Any) -> bytes:
    return msgspec.json.encode(item, enc_hook=to_json)
