"""From generate requests to the texts that come back, as they grow or whole."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from msx_frontend.generation.errors import IncompleteReply, InvalidReply
from msx_frontend.generation.jobs import Jobs, TimedReply
from msx_frontend.generation.merging import AT_ONCE
from msx_frontend.metrics.generation import Meter
from msx_frontend.models.model_version import ModelVersion
from msx_sdk.generation import GENERATE, FinishReason, GenerateDelta, GenerateRequest, Token, Usage

_decode = msgspec.msgpack.Decoder(GenerateDelta).decode


class Piece(NamedTuple):
    """A delta. `choice` is the place of its text among all that were asked for: prompt by prompt, `n` of each."""

    choice: int
    prompt: int
    delta: GenerateDelta


class Listener(Protocol):
    """Who is told what a generation says; never while it is full: then it calls `Generation.resume` later."""

    @property
    def full(self) -> bool: ...

    def said(self, pieces: list[Piece]) -> None:
        """What one job said in one turn of the loop."""


@dataclass
class Text:
    """One of the texts, when it has ended."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    prompt_tokens: tuple[Token, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish_reason: FinishReason = "stop"
    stop_reason: str | int | None = None
    seed: int | None = None

    def grow(self, delta: GenerateDelta) -> None:
        self.text += delta.text
        self.tokens += delta.tokens
        self.prompt_tokens = delta.prompt_tokens or self.prompt_tokens
        self.prompt_ids = delta.prompt_ids or self.prompt_ids
        if delta.finish_reason is not None:
            self.finish_reason, self.stop_reason, self.seed = delta.finish_reason, delta.stop_reason, delta.seed

    @property
    def mean_logprob(self) -> float:
        known = [token.logprob for token in self.tokens if token.logprob is not None]
        return sum(known) / len(known) if known else float("-inf")


class Generation:
    """One request or several of the same model. `usage` is the sum over all, complete when they have ended.

    A task for each stream would cost more than what it has to do for a token: the jobs' replies call.
    """

    def __init__(self, jobs: Jobs, version: ModelVersion, requests: Sequence[GenerateRequest]) -> None:
        self._jobs, self._version, self._requests = jobs, version, requests
        self._waiting = deque(enumerate(requests))
        self._open: list[_Reading] = []
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.usage = Usage(prompt=0, completion=0)
        self.queue_seconds = 0.0
        """What the first job waited for a worker."""

    def start(self, listener: Listener) -> asyncio.Future[None]:
        """Done when all have ended; fails with the error of the first job that fails."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._next(listener)
        return self._ended

    async def texts(self) -> list[Text]:
        """All that were asked for, in their order, when the last has ended. Raises ServiceError."""
        whole = _Whole(len(self._requests) * self._requests[0].params.n)
        await self.start(whole)
        return whole.texts

    def resume(self) -> None:
        """The listener is no longer full."""
        for reading in self._open[:]:
            reading.turn()

    # -- what the readings tell --

    def count(self, usage: Usage) -> None:
        total = self.usage
        total.prompt += usage.prompt
        total.completion += usage.completion
        total.cached += usage.cached

    def one_ended(self, reading: _Reading, listener: Listener) -> None:
        self._open.remove(reading)
        if self._waiting:
            self._next(listener)
        elif not self._open and not self._ended.done():
            self._ended.set_result(None)

    def fail(self, error: Exception) -> None:
        """All end."""
        self._waiting.clear()
        self._open.clear()
        self._jobs.close()
        if not self._ended.done():
            self._ended.set_exception(error)

    def _next(self, listener: Listener) -> None:
        if not self._waiting:
            return  # the one before has failed
        prompt, request = self._waiting.popleft()
        try:
            reply = self._jobs.submit(self._version, GENERATE, request)
        except Exception as error:  # told by the future, as everything that happens later
            self.fail(error)
        else:
            self._open.append(_Reading(self, self._version, prompt, request, reply, listener))


class _Whole:
    full = False

    def __init__(self, count: int) -> None:
        self.texts = [Text() for _ in range(count)]

    def said(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self.texts[piece.choice].grow(piece.delta)


class _Reading:
    """One reply of a handler, as it must be; the tokens of the prompt, told once, begin each of its `n` texts."""

    def __init__(
        self,
        generation: Generation,
        version: ModelVersion,
        prompt: int,
        request: GenerateRequest,
        reply: TimedReply,
        listener: Listener,
    ) -> None:
        self._generation, self._model, self._prompt = generation, version.source.name, prompt
        self._n, self._reply, self._listener = request.params.n, reply, listener
        self._meter: Meter = version.metrics.text.meter(stream=request.stream)
        self._begun, self._finished = set[int](), set[int]()
        self._prompt_tokens: tuple[Token, ...] = ()
        self._prompt_ids: tuple[int, ...] = ()
        reply.on_turn = self.turn

    def turn(self) -> None:
        """Something came, or the listener is ready for more."""
        reply = self._reply
        try:
            if reply.filled:
                if self._listener.full:
                    return
                self._listener.said(self._pieces())
            if reply.over:
                self._end()
        except Exception as error:  # the handler's fault, or a bug: whoever waits for the generation tells
            self._generation.fail(error)

    def _pieces(self) -> list[Piece]:
        arrivals, first, prompt, came = self._reply.arrivals, self._prompt * self._n, self._prompt, self._meter.came
        pieces = []
        for data in self._reply.take_now():
            delta = self._delta(data)
            came(delta, arrivals.popleft())
            pieces.append(Piece(first + delta.index, prompt, delta))
        return pieces

    def _delta(self, data: bytes) -> GenerateDelta:
        try:
            delta = _decode(data)
        except msgspec.DecodeError as error:
            raise InvalidReply(self._model, "GenerateDelta", error) from None
        if delta.index not in self._begun:
            self._begin(delta)
        if delta.finish_reason is not None:
            self._finished.add(delta.index)
        if delta.usage is not None:
            self._generation.count(delta.usage)
        return delta

    def _begin(self, delta: GenerateDelta) -> None:
        if not 0 <= delta.index < self._n:
            wrong = f"its index is {delta.index}, and {self._n} texts were asked for"
            raise InvalidReply(self._model, "GenerateDelta", wrong)
        self._generation.queue_seconds = self._generation.queue_seconds or self._reply.queue_seconds
        self._begun.add(delta.index)
        self._prompt_tokens = delta.prompt_tokens or self._prompt_tokens
        self._prompt_ids = delta.prompt_ids or self._prompt_ids
        delta.prompt_tokens, delta.prompt_ids = self._prompt_tokens, self._prompt_ids

    def _end(self) -> None:
        """Raises what the job failed with, or IncompleteReply."""
        error = self._reply.error
        self._reply.close()
        if error is not None:
            raise error
        if len(self._finished) < self._n:
            raise IncompleteReply(self._model)
        self._meter.ended()
        self._generation.one_ended(self, self._listener)
