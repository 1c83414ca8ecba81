"""The deltas of one request, made of vLLM's outputs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msx_sdk.errors import PredictionError
from msx_sdk.generation import FinishReason, GenerateDelta, GenerateRequest, MessageDelta, Token, Usage
from msx_vllm.checks import is_greedy
from msx_vllm.outputs import EngineOutput, GrownText, TextOutput
from msx_vllm.token_texts import TokenTexts

STOPPED = 503


def incomplete(text: GrownText) -> PredictionError:
    """The error of a text that vLLM gave up."""
    return PredictionError(STOPPED, f"vLLM ended the text before it was complete: {text.finish_reason}")


class ParsesTexts(Protocol):
    """The parsers of one request (`msx_vllm.engine.parsers`)."""

    @property
    def keeps_special(self) -> bool: ...

    def message(self, text: GrownText, prompt: list[int], *, stream: bool) -> MessageDelta: ...


class OutputDeltas:
    """`texts` are generated, of which the best `n` are sent. `copies`: each text is sent so often, because greedy texts
    are equal, and vLLM makes one of them only. `parsing`: vLLM's parsers, where they read the texts."""

    def __init__(
        self,
        request: GenerateRequest,
        tokens: TokenTexts,
        texts: int,
        copies: int = 1,
        parsing: ParsesTexts | None = None,
    ) -> None:
        self._parsing = parsing
        self._request, self._params, self._tokens = request, request.params, tokens
        self._best = texts > request.params.n and copies == 1
        self._copies = copies
        self._usage = Usage(prompt=0, completion=0)
        self._prompt: list[int] | None = None
        self._begun = False

    def read(self, output: EngineOutput) -> Iterator[GenerateDelta]:
        """Raises PredictionError for a text that vLLM could not finish."""
        deltas = [delta for index, text in self._chosen(output) for delta in self._copied(index, text, output)]
        self._usage.completion += sum(len(text.token_ids) for text in output.outputs) * self._copies
        if deltas and not self._begun:
            self._begin(deltas[0], output)
        if deltas and output.finished:
            deltas[-1].usage = self._usage
        yield from deltas

    def _chosen(self, output: EngineOutput) -> Iterable[tuple[int, TextOutput]]:
        """All texts by their numbers, or those with the best mean log-probability, among equals the first."""
        if not self._best:
            return ((text.index, text) for text in output.outputs)
        ranked = sorted(output.outputs, key=lambda text: -(text.cumulative_logprob or 0.0) / len(text.token_ids))
        return enumerate(ranked[: self._params.n])

    def _copied(self, index: int, text: TextOutput, output: EngineOutput) -> Iterator[GenerateDelta]:
        message = self._message(text, output)
        for copy in range(self._copies):
            delta = GenerateDelta(index=index + copy, text=text.text, tokens=self._tokens_of(text), message=message)
            if text.finish_reason is not None:
                delta.finish_reason, delta.stop_reason = self._end_of(text)
                drawn = self._params.seed is not None and not is_greedy(self._params)
                delta.seed = (self._params.seed or 0) + text.index if drawn else None
            yield delta

    def _message(self, text: TextOutput, output: EngineOutput) -> MessageDelta | None:
        if self._parsing is None:
            return None
        if self._prompt is None:  # each growth of a text has it, and it may be long
            self._prompt = list(output.prompt_token_ids or ())
        return self._parsing.message(text, self._prompt, stream=self._request.stream)

    def _tokens_of(self, text: TextOutput) -> tuple[Token, ...]:
        top = self._params.logprobs
        if top is None or text.logprobs is None:
            return tuple(self._tokens.plain(id) for id in text.token_ids)
        pairs = zip(text.token_ids, text.logprobs, strict=True)
        return tuple(self._tokens.scored(id, scores, top) for id, scores in pairs)

    def _end_of(self, text: TextOutput) -> tuple[FinishReason, str | int | None]:
        """A token that ends the text without having been asked for is the model's own end."""
        if text.finish_reason == "length":
            return "length", None
        if text.finish_reason not in ("stop", "repetition"):
            raise incomplete(text)
        reason = text.stop_reason
        if isinstance(reason, str) or reason in self._params.stop_token_ids:
            return "stop", reason
        return "eos", None

    def _begin(self, first: GenerateDelta, output: EngineOutput) -> None:
        self._begun = True
        prompt = tuple(output.prompt_token_ids or ())
        self._usage.prompt, self._usage.cached = len(prompt), output.num_cached_tokens or 0
        if self._request.return_prompt_ids:
            first.prompt_ids = prompt
        if self._params.prompt_logprobs and output.prompt_logprobs:
            first.prompt_tokens = tuple(self._prompt_tokens(prompt, output))

    def _prompt_tokens(self, prompt: Sequence[int], output: EngineOutput) -> Iterator[Token]:
        top = max(self._params.prompt_top, self._params.logprobs or 0)
        for id, scores in zip(prompt, output.prompt_logprobs or (), strict=True):
            yield self._tokens.plain(id) if scores is None else self._tokens.scored(id, scores, top)
