"""Loads the model of a Load message: resolves, initialises and warms up its handler."""

import asyncio
import contextlib
import inspect
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from msx_backend.envelopes import wrapped
from msx_backend.parallel.leader import Leader
from msx_backend.replies import ReplyWriter
from msx_backend.site_dir import prefer_packages
from msx_backend.workdir import furnish
from msx_core.config import parse_model_config
from msx_core.continuous import ContinuousRunner
from msx_core.elements import limit_to
from msx_core.expected_reply import ExpectedReplies
from msx_core.groups import group_refused
from msx_core.kserve.inference import announced
from msx_core.methods import announced as announced_methods
from msx_core.non_finite import COUNTER, HELP, non_finite
from msx_core.overlap import may_overlap, sequential_reason, steps_of
from msx_core.overlap_runner import OverlapRunner
from msx_core.resolve import resolve_packed
from msx_core.resolved_handler import HandleKind, ResolvedHandler
from msx_core.runner import Raised
from msx_core.sequences import SequenceKeys
from msx_core.step_context import StepContext
from msx_core.typed.functions import with_types
from msx_core.warmup import Batches, warm_up, warm_up_async, warmup_batches
from msx_protocol import Load, LoadProgress
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import Capabilities
from msx_sdk.metrics import Metrics
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import AsyncRunner, Conductor, Runner

log = logging.getLogger("msx.worker")


class LoadedModel:
    """A handler, its context, and the one thread on which an async handler's blocking calls run."""

    def __init__(self, load: Load, replies: ReplyWriter, raised: Raised = lambda error: None) -> None:
        self._load, self._replies, self._raised = load, replies, raised
        self._model_thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        limit_to(load.max_request_elements)
        self.keys = parse_model_config(load.config)[0]
        metrics = _metrics(load)
        non_finite.count = metrics.counter(COUNTER, help=HELP).update
        self._report("importing the handler")
        self.handler = self._resolve()
        kind = StepContext if may_overlap(self.handler, self.keys, world_size=load.world_size) else Context
        self.context = kind(_model_info(load), metrics, self._model_thread)
        self.context.report_progress = self._report

    @property
    def is_async(self) -> bool:
        return self.handler.is_async

    @property
    def uses_uvloop(self) -> bool:
        return bool(getattr(self.handler.owner, "uses_uvloop", False))

    @property
    def continuous(self) -> bool:
        return self._load.continuous and self.handler.kind is HandleKind.PLAIN

    @property
    def batch_size(self) -> int:
        return self._load.batch_size

    def start(self, leader: Leader | None = None) -> Runner:
        """Initialises and warms up a handler that works on batches."""
        self._initialize()
        if self._load.continuous and not self.continuous:
            log.warning(
                "continuousBatching has no effect: handle() yields, so that one call answers its requests completely"
            )
        runner = self._runner(leader, isolate=self._load.isolate_batch_errors)
        if examples := self._examples():
            self._report("warming up")
            with leader.warm_up() if leader else contextlib.nullcontext():
                warm_up(runner, examples, self._expected())
        return runner

    def start_following(self, conductor: Conductor) -> Runner:
        """Initialises on a rank that rank 0 leads: the plan brings warm-up and requests."""
        self._initialize()
        return self._runner(conductor, isolate=False)

    def check_parallel(self) -> None:
        """Raises HandlerLoadError for a handler that does not support such a group, or that cannot be led."""
        kinds = getattr(self.handler.owner, "parallel_types", None)
        kind = self.keys.parallel_type
        if kinds is not None and kind not in kinds:
            raise HandlerLoadError(group_refused(self._load.handler, kinds, kind))
        if self.is_async and self.handler.follow is None:
            raise HandlerLoadError(
                f"an async handler without follow(message) serves models of one rank, and this group has "
                f"{self._load.world_size}: make handle() a plain function or a generator, or lead the other ranks by "
                f"context.lead(message)"
            )

    def sequential_reason(self) -> str:
        """Why its batches do not overlap, once it is initialised; "" where they do."""
        envelope = self._load.service_envelope or ""
        return sequential_reason(self.handler, self.keys, world_size=self._load.world_size, envelope=envelope)

    def steps(self, runner: Runner) -> OverlapRunner | None:
        """The steps of a handler that overlaps; None for others."""
        reason, steps = self.sequential_reason(), steps_of(self.handler)
        if reason and self.keys.overlap:
            log.warning("overlap: true has no effect: %s", reason)
        return OverlapRunner(runner, steps, self._replies) if steps and not reason else None

    def capabilities(self) -> dict[str, Any]:
        """Features of the handler besides predictions. Raises HandlerLoadError if it is not a `Capabilities`."""
        announce = self.handler.capabilities
        if announce is None:
            return {}
        try:
            offered: dict[str, Any] = msgspec.to_builtins(announce())
            msgspec.convert(offered, Capabilities)
        except (msgspec.ValidationError, TypeError) as error:
            raise HandlerLoadError(
                f"capabilities() did not return a msx_sdk.generation.Capabilities: {error}"
            ) from None
        return offered

    def signature(self) -> dict[str, Any]:
        """The tensors that the handler announces. Raises HandlerLoadError if they are not a `Signature`."""
        signature: dict[str, Any] = msgspec.to_builtins(announced(self.handler.tensor_signature))
        return signature

    def methods(self) -> list[dict[str, Any]]:
        """The methods that the handler announces, and the schemas that its type hints give.

        Raises HandlerLoadError if they are not `MethodInfo` objects.
        """
        named = announced_methods(self.handler.offered_methods)
        methods: list[dict[str, Any]] = msgspec.to_builtins(with_types(named, self.handler.typed))
        return methods

    def examples_by_id(self) -> dict[str, InferenceRequest]:
        return {request.id: request for batch in self._examples() for request in batch}

    def _runner(self, conductor: Conductor | None, *, isolate: bool) -> Runner:
        if self.continuous:
            return ContinuousRunner(self.handler, self.context, conductor, self._raised)
        return Runner(self.handler, self.context, isolate=isolate, conductor=conductor, raised=self._raised)

    def _initialize(self) -> None:
        self._report("initializing")
        started: Any = self.handler.initialize(self.context)
        if inspect.iscoroutine(started):
            asyncio.run(started)

    async def start_async(self, leader: Leader | None = None) -> AsyncRunner:
        if leader is not None:
            self.context.lead = leader.tell
        self.context._flush = self._replies.flush_now
        self._report("initializing")
        started: Any = self.handler.initialize(self.context)
        if inspect.isawaitable(started):
            await started
        runner = AsyncRunner(self.handler, self.context, self._raised)
        if examples := self._examples():
            self._report("warming up")
            await warm_up_async(runner, examples, self._expected())
        return runner

    def close(self) -> None:
        """Calls the handler's close(). Its exceptions are logged: all requests have been answered by now."""
        try:
            closed = self.handler.close()
            if inspect.iscoroutine(closed):
                asyncio.run(closed)
        except (Exception, SystemExit):
            log.exception("the handler's close() failed")

    async def close_async(self) -> None:
        """The same on the loop on which the handler ran."""
        try:
            closed: Any = self.handler.close()
            if inspect.isawaitable(closed):
                await closed
        except (Exception, SystemExit):
            log.exception("the handler's close() failed")

    def _resolve(self) -> ResolvedHandler:
        model_dir = Path(self._load.model_dir)
        furnish(model_dir)
        if self._load.site_dir:
            prefer_packages(self._load.site_dir)
        sys.dont_write_bytecode = True  # the unpacked archive is shared and stays as it is
        handler = resolve_packed(self._load.handler, model_dir, self._load.manifest)
        envelope = self._load.service_envelope
        return wrapped(handler, envelope) if envelope else handler

    def _examples(self) -> Batches:
        return warmup_batches(self.handler.owner, self._load.config, self.batch_size)

    def _expected(self) -> ExpectedReplies | None:
        return ExpectedReplies.of(self._load.config)

    def _report(self, phase: str) -> None:
        self._replies.send(LoadProgress(phase))


def _metrics(load: Load) -> Metrics:
    metrics = Metrics(load.model_name)
    metrics.every_call = load.log_calls
    for one in load.model_metrics:
        metrics.add_metric_to_cache(one.name, one.unit, one.dimensions, one.kind)
    return metrics


def _model_info(load: Load) -> ModelInfo:
    return ModelInfo(
        model_name=load.model_name,
        model_version=load.model_version,
        model_dir=Path(load.model_dir),
        manifest=load.manifest,
        config=load.config,
        batch_size=load.batch_size,
        device_id=load.device_id,
        framework_device=load.framework_device,
        rank=load.rank,
        local_rank=load.local_rank,
        world_size=load.world_size,
        place=load.place,
        cache_dir=None if load.cache_dir is None else Path(load.cache_dir),
        decode_input=load.decode_input,
        limit_max_image_pixels=load.limit_max_image_pixels,
        server_version=load.server_version,
        sequence_keys=SequenceKeys.from_env(),
        text_limits=load.text_limits,
        largest_body=max(load.max_request_size, load.max_response_size),
        servable=load.servable,
        from_older_server=load.from_older_server,
        host_processes=load.host_processes,
    )
