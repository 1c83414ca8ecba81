"""Feed requests to a handler and its results to a sink. The worker and `msx_sdk.testing` share it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Protocol

from msx_core.batch import Batch, BatchSink, InvalidResult
from msx_core.context import Context
from msx_core.errors import PredictionError
from msx_core.failures import RequestFailure
from msx_core.reading import reader_of
from msx_core.request import InferenceRequest
from msx_core.resolved_handler import ResolvedHandler

RAISED = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
"""Exceptions that end a handler's call; KeyboardInterrupt ends the process."""


Raised = Callable[[BaseException], object]
"""Called with each exception that ends a call, before its requests are answered."""


class Conductor(Protocol):
    """Keeps the ranks of a parallel group in step: each makes the same calls, with the same steps."""

    def begin(self, requests: list[InferenceRequest]) -> None:
        """Called before the handler."""

    def proceed(self, wanted: bool) -> bool:
        """Whether the generator is asked for more; `wanted` is what this rank alone would do."""

    def end(self, error: BaseException | None) -> None:
        """Called after the handler on this rank."""


class Alone:
    """The conductor of a model of one rank."""

    def begin(self, requests: list[InferenceRequest]) -> None:
        return None

    def proceed(self, wanted: bool) -> bool:
        return wanted

    def end(self, error: BaseException | None) -> None:
        return None


class Runner:
    """Runs handlers that work on one batch at a time: they return, yield or send."""

    paced = True
    """The handler waits while the clients of its batch are slow."""

    def __init__(
        self,
        handler: ResolvedHandler,
        context: Context,
        *,
        isolate: bool = True,
        conductor: Conductor | None = None,
        raised: Raised = lambda error: None,
    ) -> None:
        self.handler, self.context = handler, context
        self._isolate, self._raised = isolate, raised
        self._conductor = conductor or Alone()
        self._reader = reader_of(handler, context.info)
        self.open: list[InferenceRequest] = []
        """After a call: the requests that need another one; used by `ContinuousRunner` only."""

    def run(self, requests: list[InferenceRequest], sink: BatchSink | None) -> None:
        """Answer every request; without a sink the answers are dropped, as on all ranks of a group but the first.

        What a handler raises never leaves here (KeyboardInterrupt apart).
        """
        try:
            readable = self.readable(requests, sink)
            if readable:
                self.run_read(readable, sink)
        finally:
            self.context.bind(None)  # what the requests hold is free now

    def readable(self, requests: list[InferenceRequest], sink: BatchSink | None) -> list[InferenceRequest]:
        """Read the requests. Returns those that can be read; others fail alone, before other ranks hear of the call."""
        readable = []
        for request in requests:
            try:
                self._reader.read(request)
                readable.append(request)
            except RAISED as error:
                _log(self.context.logger, error)
                if sink is not None:
                    sink.fail(request, RequestFailure.of(error))
        return readable

    def run_read(self, requests: list[InferenceRequest], sink: BatchSink | None) -> None:
        """Answer requests that `readable` has returned. The context goes on to describe their batch."""
        # In a group the other ranks, which send nothing, would go on to a collective without this one.
        batch = Batch(requests, sink, blocks=self.paced and isinstance(self._conductor, Alone))
        error = self._attempt(batch)
        if error is not None:
            self.recover(batch, error, sink)

    def recover(self, batch: Batch, error: BaseException, sink: BatchSink | None) -> None:
        """Answer the requests of a batch that failed: each by a call of its own, unless something was sent already."""
        if self._isolate and len(batch.requests) > 1 and not batch.anything_sent:
            self._one_by_one(batch.requests, sink)
        else:
            batch.fail(error)

    def _attempt(self, batch: Batch) -> BaseException | None:
        context = self.context.for_batch(batch)
        self._conductor.begin(batch.requests)
        error = self._call(batch, context)
        self._conductor.end(error)
        return error

    def _call(self, batch: Batch, context: Context) -> BaseException | None:
        try:
            decode = context.info.decode_input
            data = [request.data(decode) for request in batch.requests]
            handler, operation = self.handler, batch.requests[0].operation
            handle = handler.function_for(operation) if operation else handler.handle
            self.answer(batch, handle(data, context), context)
        except RAISED as error:
            self.failed(context, error)
            return error
        return None

    def failed(self, context: Context, error: BaseException) -> None:
        """Log what ended a call, and tell who wants to know."""
        _log(context.logger, error)
        self._raised(error)

    def answer(self, batch: Batch, result: Any, context: Context) -> None:
        """Take what a call returned: a list, or a generator of lists. Raises InvalidResult, and what it raises."""
        if not isinstance(result, list) and isinstance(result, Generator):  # which takes longer to find out
            self._stream(batch, result)
        else:
            batch.finish(result)

    def _stream(self, batch: Batch, results: Generator[Any, None, Any]) -> None:
        first, several = batch.requests[0], len(batch.requests) > 1
        batch.expect_streams()
        try:
            while self._conductor.proceed(not batch.deserted):
                values = next(results)
                if self.paced and (several or first.spent):
                    batch.wait()
                batch.send(values)
        except StopIteration as end:
            if end.value is not None:
                batch.finish(end.value)
        finally:
            results.close()
        batch.close()

    def _one_by_one(self, requests: list[InferenceRequest], sink: BatchSink | None) -> None:
        self.context.logger.warning("the handler failed a batch of %d; each request is run alone", len(requests))
        for request in requests:
            if not request.cancelled:
                self.run_read([request], sink)
                if sink is not None:
                    sink.flush()


class AsyncRunner:
    """Runs `async def handle(data, context)`: one request for each call, many calls at once."""

    def __init__(self, handler: ResolvedHandler, context: Context, raised: Raised = lambda error: None) -> None:
        self.handler, self.context, self._raised = handler, context, raised
        self._reader = reader_of(handler, context.info)

    async def run(self, request: InferenceRequest, sink: BatchSink) -> None:
        """Answer one request. To cancel it, set its flag and cancel the task that runs this."""
        batch = Batch([request], sink)
        context = self.context.for_call(batch)
        try:
            self._reader.read(request)
            handler, operation = self.handler, request.operation
            handle = handler.function_for(operation) if operation else handler.handle
            result = handle([request.data(context.info.decode_input)], context)
            if isinstance(result, AsyncGenerator):
                await self._stream(batch, result)
            else:
                batch.finish(await result)
        except RAISED as error:
            if isinstance(error, asyncio.CancelledError) and request.cancelled:
                raise
            _log(context.logger, error)
            self._raised(error)
            batch.fail(error)

    async def _stream(self, batch: Batch, results: AsyncGenerator[Any, None]) -> None:
        batch.expect_streams()
        try:
            request = batch.requests[0]
            async for values in results:
                if request.sent >= request.credit:
                    await request.granted()
                batch.send(values)
                if batch.deserted:
                    break
        finally:
            await results.aclose()
        batch.close()


def _log(logger: logging.LoggerAdapter[logging.Logger], error: BaseException) -> None:
    """Logs the error, with a traceback unless the handler chose it as its answer."""
    if isinstance(error, PredictionError):
        level = logging.ERROR if error.status >= 500 else logging.INFO
        logger.log(level, "the handler answers %d: %s", error.status, error.message)
    else:
        logger.error("the handler failed", exc_info=error)


__all__ = ["Alone", "AsyncRunner", "Conductor", "InvalidResult", "Runner"]
