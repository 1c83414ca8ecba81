"""From generate requests to the texts that come back, as they grow or whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from msx_frontend.llm.errors import IncompleteReply, InvalidReply
from msx_frontend.llm.jobs import Jobs
from msx_frontend.llm.merging import merged
from msx_frontend.models.model_version import ModelVersion
from msx_sdk.generation import GENERATE, FinishReason, GenerateDelta, GenerateRequest, Token, Usage

_decoder = msgspec.msgpack.Decoder(GenerateDelta)


class Piece(NamedTuple):
    """A delta. `choice` is the place of its text among all that were asked for: prompt by prompt, `n` of each."""

    choice: int
    prompt: int
    delta: GenerateDelta


@dataclass
class Text:
    """One of the texts, when it has ended."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    prompt_tokens: tuple[Token, ...] = ()
    finish_reason: FinishReason = "stop"
    stop_reason: str | int | None = None
    seed: int | None = None

    def grow(self, delta: GenerateDelta) -> None:
        self.text += delta.text
        self.tokens += delta.tokens
        self.prompt_tokens = delta.prompt_tokens or self.prompt_tokens
        if delta.finish_reason is not None:
            self.finish_reason, self.stop_reason, self.seed = delta.finish_reason, delta.stop_reason, delta.seed

    @property
    def mean_logprob(self) -> float:
        known = [token.logprob for token in self.tokens if token.logprob is not None]
        return sum(known) / len(known) if known else float("-inf")


class Generation:
    """One request or several of the same model. `usage` is the sum over all, complete when they have ended."""

    def __init__(self, jobs: Jobs, version: ModelVersion, requests: Sequence[GenerateRequest]) -> None:
        self._jobs, self._version, self._requests = jobs, version, requests
        self.usage = Usage(prompt=0, completion=0)
        self.queue_seconds = 0.0
        """What the first job waited for a worker."""

    async def pieces(self) -> AsyncIterator[Piece]:
        """Raises the ServiceError of the first job that fails."""
        n = self._requests[0].params.n
        async for prompt, delta in merged([self._deltas(request) for request in self._requests]):
            yield Piece(prompt * n + delta.index, prompt, delta)

    async def texts(self) -> list[Text]:
        """All that were asked for, in their order, when the last has ended."""
        texts = [Text() for _ in range(len(self._requests) * self._requests[0].params.n)]
        async for piece in self.pieces():
            texts[piece.choice].grow(piece.delta)
        return texts

    async def _deltas(self, request: GenerateRequest) -> AsyncIterator[GenerateDelta]:
        name, unfinished = self._version.source.name, set(range(request.params.n))
        scored = _PromptTokens()
        reply = self._jobs.submit(self._version, GENERATE, request)
        meter = self._version.metrics.text.meter(stream=request.stream)
        try:
            async for data in reply:
                self.queue_seconds = self.queue_seconds or reply.queue_seconds
                delta = _delta(name, data, request.params.n)
                meter.came(delta, reply.arrivals.popleft())
                scored.share(delta)
                if delta.finish_reason is not None:
                    unfinished.discard(delta.index)
                self._count(delta.usage)
                yield delta
        finally:
            reply.close()
        if unfinished:
            raise IncompleteReply(name)
        meter.ended()

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            total = self.usage
            total.prompt += usage.prompt
            total.completion += usage.completion
            total.cached += usage.cached


class _PromptTokens:
    """A handler tells them once; each of the `n` texts begins with them."""

    def __init__(self) -> None:
        self._tokens: tuple[Token, ...] = ()
        self._begun: set[int] = set()

    def share(self, delta: GenerateDelta) -> None:
        self._tokens = delta.prompt_tokens or self._tokens
        if delta.index not in self._begun:
            self._begun.add(delta.index)
            delta.prompt_tokens = self._tokens


def _delta(model: str, data: bytes, n: int) -> GenerateDelta:
    try:
        delta = _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidReply(model, "GenerateDelta", error) from None
    if not 0 <= delta.index < n:
        raise InvalidReply(model, "GenerateDelta", f"its index is {delta.index}, and {n} texts were asked for")
    return delta
