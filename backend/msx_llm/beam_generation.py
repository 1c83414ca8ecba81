"""Beam search over an engine: each beam is a request for one token, whose beginning the prefix cache has."""

from collections.abc import AsyncIterator
from typing import Any

from msx_core.generation.beams import Beam, BeamRounds, BeamToken, EndedBeam, Tops, check_beams, tops_of_all, wanted
from msx_core.generation.counts import texts_asked
from msx_llm.checks import limit_of, prompt_of
from msx_llm.engine import Engine
from msx_llm.limits import EngineLimits
from msx_llm.replies import ReplyTokens
from msx_llm.text import TextStream, Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateDelta, GenerateRequest, SamplingParams, Usage

MOST_TOPS = 100
"""Likeliest tokens that a request may ask for."""


class BeamGeneration:
    def __init__(self, engine: Engine, tokenizer: Tokenizer, limits: EngineLimits, vocab_size: int) -> None:
        self._engine, self._tokenizer, self._limits, self._vocab_size = engine, tokenizer, limits, vocab_size
        self._tokens = ReplyTokens(tokenizer)

    async def generate(self, request: GenerateRequest, deadline: float | None) -> AsyncIterator[GenerateDelta]:
        """One delta for each text, the best first. Raises as `Engine.submit` does."""
        rounds, prompt = self._begin(request)
        made = cached = 0
        while not rounds.over:
            asked = [self._one_token(request, prompt, beam, rounds.wanted, deadline) for beam in rounds.running]
            answers = await tops_of_all(asked)
            made += len(answers)
            cached = cached if made > len(answers) else answers[0][1]
            rounds.grow([tops for tops, _ in answers])
        for index, ended in enumerate(rounds.ended[: request.params.n]):
            delta = self._delta(index, ended, request)
            if index == 0 and request.return_prompt_ids:
                delta.prompt_ids = tuple(prompt)
            if index == request.params.n - 1:
                delta.usage = Usage(prompt=len(prompt), completion=_length(rounds, request), cached=cached)
            yield delta

    def _begin(self, request: GenerateRequest) -> tuple[BeamRounds, list[int]]:
        """Raises InvalidInput."""
        params, prompt = request.params, prompt_of(request, self._tokenizer, self._limits, self._vocab_size)
        assert params.beam_search is not None
        width, eos = texts_asked(request), frozenset() if params.ignore_eos else self._tokenizer.eos
        self._check(request, width, len(eos))
        most = limit_of(params, len(prompt), self._limits) - len(prompt)
        return BeamRounds(width, eos, most, params.beam_search), prompt

    def _check(self, request: GenerateRequest, width: int, ends: int) -> None:
        check_beams(request)
        most = min(self._limits.slots, MOST_TOPS // max(2, 1 + ends), self._vocab_size // wanted(1, ends))
        if width > most:
            raise InvalidInput(f"n: {width} beams are more than the {most} of a step (slotBuckets); ask for fewer")

    async def _one_token(
        self, request: GenerateRequest, prompt: list[int], beam: Beam, count: int, deadline: float | None
    ) -> tuple[Tops, int]:
        """-> The likeliest tokens behind the beam, and how many of its tokens were cached."""
        asked = GenerateRequest(
            prompt=(*prompt, *(token.id for token in beam.tokens)),
            params=SamplingParams(max_tokens=1, temperature=0.0, logprobs=count, ignore_eos=True, speculative=False),
            adapter=request.adapter,
            adapter_files=request.adapter_files,
            priority=request.priority,
            stream=False,
        )
        with self._engine.submit(asked, deadline=deadline, inner=True) as deltas:
            (delta,) = [delta async for delta in deltas]
        top = tuple((it.id, it.logprob) for it in delta.tokens[0].top)
        return top, 0 if delta.usage is None else delta.usage.cached

    def _delta(self, index: int, ended: EndedBeam, request: GenerateRequest) -> GenerateDelta:
        stream = TextStream(self._tokenizer, skip_special=request.params.skip_special_tokens)
        tokens = ended.beam.tokens
        said = [stream.push(token.id).text for token in (tokens[:-1] if ended.by_eos else tokens)]
        return GenerateDelta(
            index=index,
            text="".join([*said, stream.finish()]),
            tokens=tuple(self._token(token, request.params.logprobs) for token in tokens),
            finish_reason="eos" if ended.by_eos else "length",
        )

    def _token(self, token: BeamToken, logprobs: int | None) -> Any:
        if logprobs is None:
            return self._tokens.plain(token.id)
        return self._tokens.scored(token.id, token.logprob, token.top[:logprobs])


def _length(rounds: BeamRounds, request: GenerateRequest) -> int:
    return sum(len(one.beam.tokens) for one in rounds.ended[: request.params.n])
