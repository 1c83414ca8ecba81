"""Beam search over vLLM's engine: each beam is a request for one token, whose beginning the prefix cache has."""

from collections.abc import AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

from vllm.sampling_params import RequestOutputKind, SamplingParams

from msx_core.generation.beams import Beam, BeamRounds, EndedBeam, Tops, check_beams, tops_of_all, wanted
from msx_core.generation.counts import texts_asked
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateDelta, GenerateRequest, Token, TopToken, Usage
from msx_vllm.deltas import incomplete
from msx_vllm.token_texts import TokenTexts, place


class BeamPrompt(NamedTuple):
    """The tokens that all beams of a request begin with. `room`: tokens of a text at most; `options`: of each call."""

    ids: tuple[int, ...]
    room: int
    options: dict[str, Any]


@dataclass(frozen=True)
class BeamText:
    """A whole text, as parsers read it."""

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str | None

    @classmethod
    def of(cls, delta: GenerateDelta) -> "BeamText":
        return cls(delta.index, delta.text, tuple(token.id for token in delta.tokens), delta.finish_reason)


class EngineBeams:
    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._tokenizer, config = engine.get_tokenizer(), engine.model_config
        self._eos = _ends(self._tokenizer.eos_token_id, config.try_get_generation_config().get("eos_token_id"))
        self._most_tops: int = config.max_logprobs if config.max_logprobs >= 0 else config.get_vocab_size()
        self._texts = TokenTexts(self._tokenizer)

    async def search(self, request: GenerateRequest, prompt: BeamPrompt, id: str) -> AsyncIterator[GenerateDelta]:
        """One delta for each text, the best first. Raises InvalidInput, and what vLLM raises."""
        rounds, made, cached = self._begin(request, prompt), 0, 0
        while not rounds.over:
            asked = [
                self._one_token(prompt, beam, rounds.wanted, f"{id}-{made + at}")
                for at, beam in enumerate(rounds.running)
            ]
            answers = await tops_of_all(asked)
            made += len(answers)
            cached = cached if made > len(answers) else answers[0][1]
            rounds.grow([tops for tops, _ in answers])
        texts = rounds.ended[: request.params.n]
        for index, ended in enumerate(texts):
            delta = self._delta(index, ended, request)
            if index == 0 and request.return_prompt_ids:
                delta.prompt_ids = prompt.ids
            if index == len(texts) - 1:
                completion = sum(len(one.beam.tokens) for one in texts)
                delta.usage = Usage(prompt=len(prompt.ids), completion=completion, cached=cached)
            yield delta

    def _begin(self, request: GenerateRequest, prompt: BeamPrompt) -> BeamRounds:
        """Raises InvalidInput."""
        check_beams(request)
        eos = frozenset[int]() if request.params.ignore_eos else self._eos
        width = texts_asked(request)
        if (asked := wanted(width, len(eos))) > self._most_tops:
            raise InvalidInput(
                f"n: {width} beams need {asked} tokens of each step, more than vllm.max_logprobs ({self._most_tops}) "
                "allows; ask for fewer"
            )
        assert request.params.beam_search is not None
        return BeamRounds(width, eos, prompt.room, request.params.beam_search)

    async def _one_token(self, prompt: BeamPrompt, beam: Beam, count: int, id: str) -> tuple[Tops, int]:
        """-> The likeliest tokens behind the beam, and how many of its tokens were cached. Raises PredictionError for
        one that vLLM gave up."""
        given = {"type": "token", "prompt_token_ids": [*prompt.ids, *(token.id for token in beam.tokens)]}
        asked = SamplingParams(
            max_tokens=1, temperature=0.0, logprobs=count, ignore_eos=True, output_kind=RequestOutputKind.FINAL_ONLY
        )
        async with aclosing(self._engine.generate(given, asked, id, **prompt.options)) as outputs:
            (output,) = [output async for output in outputs]
        (text,) = output.outputs
        if not text.logprobs:
            raise incomplete(text)
        (scores,) = text.logprobs
        ranked = sorted(scores.items(), key=lambda one: place(one[1]))[:count]
        return tuple((token, score.logprob) for token, score in ranked), output.num_cached_tokens or 0

    def _delta(self, index: int, ended: EndedBeam, request: GenerateRequest) -> GenerateDelta:
        tokens = ended.beam.tokens
        said = [token.id for token in (tokens[:-1] if ended.by_eos else tokens)]
        top = request.params.logprobs
        return GenerateDelta(
            index=index,
            text=self._tokenizer.decode(said, skip_special_tokens=request.params.skip_special_tokens),
            tokens=tuple(
                self._texts.plain(one.id) if top is None else self._scored(one.id, one.logprob, one.top[:top])
                for one in tokens
            ),
            finish_reason="eos" if ended.by_eos else "length",
        )

    def _scored(self, id: int, logprob: float, top: Tops) -> Token:
        plain, others = self._texts.plain(id), [(other, self._texts.plain(other).text, score) for other, score in top]
        return Token(
            id=id,
            text=plain.text,
            special=plain.special,
            logprob=logprob,
            bytes=self._texts.bytes_of(id),
            top=tuple(TopToken(id=other, text=text, logprob=score) for other, text, score in others),
        )


def _ends(*given: int | Collection[int] | None) -> frozenset[int]:
    """The tokens that end a text: numbers, and lists of them."""
    lists = [[one] if isinstance(one, int) else list(one or ()) for one in given]
    return frozenset(token for one in lists for token in one)
