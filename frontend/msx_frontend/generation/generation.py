"""Generate requests and their texts, which come back in deltas or whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import NamedTuple, Protocol

import msgspec

from msx_core.generation import GENERATE, FinishReason, GenerateDelta, GenerateRequest, MessageDelta, Token, Usage
from msx_core.text_limits import TextLimits, too_much
from msx_frontend.generation.errors import IncompleteReply, InvalidReply, WrongParameter
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.turns import TurnListener, Turns, TurnSink, texts_of
from msx_frontend.metrics.generation import Meter
from msx_frontend.models.versions.model_version import ModelVersion

_decode = msgspec.msgpack.Decoder(GenerateDelta).decode
MOST_TEXTS = "max_texts_per_request"
SHARED, SMALL = 1 << 14, 256
"""Deltas that are kept, as most tokens of a model come again and again, and the most bytes of one."""


class TextDelta(NamedTuple):
    """A delta. `choice` is the place of its text among all that were asked for: prompt by prompt, `n` of each."""

    choice: int
    prompt: int
    delta: GenerateDelta


class GenerationListener(TurnListener, Protocol):
    """Where a generation goes: delta by delta, then `ended` or `failed`."""

    def add(self, text_delta: TextDelta) -> None: ...


@dataclass
class Text:
    """One text that has ended."""

    pieces: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    prompt_tokens: tuple[Token, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish_reason: FinishReason = "stop"
    stop_reason: str | int | None = None
    seed: int | None = None
    messages: list[MessageDelta] = field(default_factory=list)
    """Its parts, where the handler has parsed it."""

    def grow(self, delta: GenerateDelta) -> None:
        self.pieces.append(delta.text)
        self.tokens += delta.tokens
        self.prompt_tokens = delta.prompt_tokens or self.prompt_tokens
        self.prompt_ids = delta.prompt_ids or self.prompt_ids
        if delta.message is not None:
            self.messages.append(delta.message)
        if delta.finish_reason is not None:
            self.finish_reason, self.stop_reason, self.seed = delta.finish_reason, delta.stop_reason, delta.seed

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def mean_logprob(self) -> float:
        known = [token.logprob for token in self.tokens if token.logprob is not None]
        return sum(known) / len(known) if known else float("-inf")


class Generation:
    """One request or several of the same model. `usage` is the sum over all, complete when they have ended.

    It needs no task: the sinks of its jobs call.
    """

    __slots__ = ("_requests", "_version", "queue_seconds", "usage")

    def __init__(self, version: ModelVersion, requests: Sequence[GenerateRequest], limits: TextLimits) -> None:
        """Raises WrongParameter for too many texts."""
        _check_texts(requests, limits.max_texts_per_request)
        self._version, self._requests = version, requests
        self.usage = Usage(prompt=0, completion=0)
        self.queue_seconds = 0.0
        """How long the first job waited for a worker."""

    @property
    def count(self) -> int:
        """How many texts the client asked for."""
        return len(self._requests) * self._requests[0].params.n

    def begin(self, request: TextRequest, listener: GenerationListener) -> None:
        """Submit the jobs. `listener` is told of each delta and each failure."""

        def sink_of(turns: Turns, prompt: int, message: GenerateRequest) -> _Reading:
            return _Reading(turns, self, self._version, prompt, message, listener)

        Turns(request, self._version, GENERATE, self._requests, sink_of, listener).begin()

    def add_usage(self, usage: Usage) -> None:
        total = self.usage
        total.prompt += usage.prompt
        total.completion += usage.completion
        total.cached += usage.cached


def _check_texts(requests: Sequence[GenerateRequest], most: int) -> None:
    """Bound the texts that are generated, also those that are not sent (`best_of`). Raises WrongParameter."""
    each = texts_of(requests[0])
    if (texts := len(requests) * each) > most:
        name = "n" if each == requests[0].params.n else "best_of"
        raise WrongParameter(
            name, f"{len(requests)} prompts with {each} texts each: {too_much('texts', texts, most, MOST_TEXTS)}"
        )


@lru_cache(SHARED)
def _decoded(data: bytes) -> GenerateDelta | None:
    try:
        delta = _decode(data)
    except msgspec.DecodeError:
        return None
    return delta if delta == GenerateDelta(text=delta.text, tokens=delta.tokens) and len(delta.tokens) == 1 else None


def _shared(data: bytes) -> GenerateDelta | None:
    """The delta of one token of the first text, with nothing else to tell; None for any other. Nobody may change it."""
    return _decoded(data) if len(data) <= SMALL else None


class _Reading(TurnSink):
    """One reply of a handler, as it must be; the tokens of the prompt, told once, begin each of its `n` texts."""

    __slots__ = (
        "_begun",
        "_finished",
        "_flows",
        "_generation",
        "_listener",
        "_meter",
        "_model",
        "_n",
        "_prompt",
        "_prompt_ids",
        "_prompt_tokens",
        "_streams",
    )

    def __init__(
        self,
        turns: Turns,
        generation: Generation,
        version: ModelVersion,
        prompt: int,
        request: GenerateRequest,
        listener: GenerationListener,
    ) -> None:
        super().__init__(turns)
        self._generation, self._model, self._prompt = generation, version.source.name, prompt
        self._n, self._listener = request.params.n, listener
        self._meter: Meter = version.metrics.text.meter(stream=request.stream)
        self._streams, self._flows = request.stream, False
        """Whether the next delta may be one that many texts have."""
        self._begun, self._finished = set[int](), set[int]()
        self._prompt_tokens: tuple[Token, ...] = ()
        self._prompt_ids: tuple[int, ...] = ()

    def read(self, data: bytes) -> None:
        if self._flows and (shared := _shared(data)) is not None:
            self._meter.came_alone(monotonic())
            self._listener.add(TextDelta(self._prompt, self._prompt, shared))
            return
        try:
            delta = _decode(data)
        except msgspec.DecodeError as error:
            raise InvalidReply(self._model, "GenerateDelta", error) from None
        index = delta.index
        if index not in self._begun:
            self._begin(delta)
        if delta.finish_reason is not None:
            self._finished.add(index)
        if delta.usage is not None:
            self._generation.add_usage(delta.usage)
        self._meter.came(delta, monotonic())
        plain = bool(delta.tokens) and delta.tokens[0].logprob is None
        self._flows = plain and self._streams and self._n == 1
        self._listener.add(TextDelta(self._prompt * self._n + index, self._prompt, delta))

    def complete(self) -> None:
        """Raises IncompleteReply."""
        if len(self._finished) < self._n:
            raise IncompleteReply(self._model)
        self._meter.ended()

    def _begin(self, delta: GenerateDelta) -> None:
        if not 0 <= delta.index < self._n:
            wrong = f"its index is {delta.index}, and {self._n} texts were asked for"
            raise InvalidReply(self._model, "GenerateDelta", wrong)
        generation, job = self._generation, self.job
        if job is not None and not generation.queue_seconds:
            generation.queue_seconds = max(job.started - job.enqueued, 0.0)
        self._begun.add(delta.index)
        self._prompt_tokens = delta.prompt_tokens or self._prompt_tokens
        self._prompt_ids = delta.prompt_ids or self._prompt_ids
        delta.prompt_tokens, delta.prompt_ids = self._prompt_tokens, self._prompt_ids
