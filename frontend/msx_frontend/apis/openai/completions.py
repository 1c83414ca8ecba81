"""OpenAI's `/v1/completions`: texts that go on from prompts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from msx_core.generation import GENERATE, Capabilities, GenerateRequest, SamplingParams, Token
from msx_core.generation.wire import Integer, Natural
from msx_frontend.apis.openai.logprobs import Offsets, completion_logprobs, prompt_logprobs
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import (
    DONE,
    CompleteTextReply,
    EventsOfText,
    JsonReply,
    StreamedTextReply,
    event,
    fingerprint,
)
from msx_frontend.generation.sampling import (
    SamplingFields,
    StreamOptions,
    TopLogprobs,
    ignored_of,
    names_of,
    sampling_params,
)
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.truncation import most_beside
from msx_frontend.generation.usage import FINISH, RunningUsage, openai_usage
from msx_frontend.models.versions.model_version import ModelVersion

DEFAULT_TOKENS = 16
"""OpenAI's limit."""

Ids = list[Integer]
Prompt = str | tuple[int, ...]


class CompletionRequest(SamplingFields, kw_only=True):
    model: str | None = None
    prompt: str | list[str | Integer | Ids] | None = None
    suffix: Any = None
    max_tokens: Natural | None = None
    best_of: Annotated[int, Meta(ge=1, le=128)] | None = None
    echo: bool | None = None
    logprobs: TopLogprobs | None = None
    prompt_logprobs: TopLogprobs | None = None
    return_token_ids: bool | None = None


def completions(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    asked = request.read(CompletionRequest)
    if asked.stream:
        request.will_stream()
    request.names = names_of(asked)
    told_usage = asked.told_usage
    version, adapter, name = request.directory.find_adapted(asked.model, GENERATE)
    prompts = prompts_of(asked.prompt)
    request.ignored = ignored_of(asked, version)
    shape = _CompletionShape(asked, version, name, prompts, f"cmpl-{request.id}")
    offered = version.schema.capabilities or Capabilities()
    params = _params(asked, offered, prompts)
    truncate = most_beside(asked.truncate_prompt_tokens, offered, params.max_tokens)
    messages = [_generate_request(asked, prompt, params, adapter, truncate) for prompt in prompts]
    generation = Generation(version, messages, request.api.limits)
    if asked.stream:
        return StreamedTextReply(generation, _CompletionStream(shape, generation, told_usage))

    def write(texts: list[Text]) -> JsonReply:
        choices = [shape.choice(index, text) for index, text in enumerate(texts)]
        return JsonReply({**shape.head, "choices": choices, "usage": openai_usage(generation.usage)})

    return CompleteTextReply(generation, write)


def prompts_of(given: str | list[str | int | Ids] | None) -> list[Prompt]:
    """A text, token ids, or a list of either. Raises WrongParameter."""
    if not given and not isinstance(given, str):
        raise WrongParameter("prompt", "a text, token ids, or a list of them is needed")
    if isinstance(given, str):
        return [given]
    if all(isinstance(item, int) for item in given):
        return [_ids(given)]
    if any(isinstance(item, int) for item in given):
        raise WrongParameter("prompt", "token ids and texts in one list")
    return [item if isinstance(item, str) else _ids(item) for item in given]


def _ids(given: Any) -> tuple[int, ...]:
    if not given or min(given) < 0:
        raise WrongParameter("prompt", "token ids are at least 0, and at least one is needed")
    return tuple(given)


def _params(asked: CompletionRequest, offered: Capabilities, prompts: list[Prompt]) -> SamplingParams:
    n, best_of = asked.n or 1, asked.best_of
    if best_of is not None and best_of < n:
        raise WrongParameter("best_of", f"at least n ({n}), not {best_of}")
    if asked.stream and best_of is not None and best_of > n:
        raise WrongParameter("best_of", "not together with stream: the best is known at the end")
    if asked.max_tokens == 0 and not asked.echo:
        raise WrongParameter("max_tokens", "expected `int` >= 1; 0 only together with echo")
    return sampling_params(
        asked,
        offered,
        max_tokens=max(1, DEFAULT_TOKENS if asked.max_tokens is None else asked.max_tokens),
        best_of=best_of if best_of != n else None,
        logprobs=asked.logprobs,
        prompt_logprobs=bool(asked.echo) and (asked.logprobs is not None or not isinstance(prompts[0], str)),
        prompt_top=asked.prompt_logprobs,
        defaults=offered.sampling,
    )


def _generate_request(
    asked: CompletionRequest, prompt: Prompt, params: SamplingParams, adapter: str, truncate: int | None
) -> GenerateRequest:
    return GenerateRequest(
        prompt=prompt,
        adapter=adapter,
        params=params,
        stream=bool(asked.stream),
        priority=asked.priority or 0,
        truncate=truncate,
        add_special_tokens=asked.add_special_tokens is not False,
        return_prompt_ids=bool(asked.return_token_ids) or asked.told_usage.continuous_usage_stats,
    )


class _CompletionShape:
    """How this reply is written. With `max_tokens` 0 the one token that was made is left out."""

    def __init__(
        self, asked: CompletionRequest, version: ModelVersion, name: str, prompts: list[Prompt], id: str
    ) -> None:
        self._asked, self._prompts = asked, prompts
        self._drop = asked.max_tokens == 0
        self.head = {
            "id": id,
            "object": "text_completion",
            "created": int(time.time()),
            "model": name,
            "system_fingerprint": fingerprint(version),
        }

    def choice(self, index: int, text: Text) -> dict[str, Any]:
        tokens = [] if self._drop else text.tokens
        said = "" if self._drop else text.text
        echoed = self._echo(index // (self._asked.n or 1), text.prompt_tokens)
        told = text.prompt_tokens if self._asked.echo else ()
        logprobs = self.logprobs([*told, *tokens], echoed + said, Offsets())
        choice = _choice(index, echoed + said, logprobs, "length" if self._drop else FINISH[text.finish_reason])
        return {**choice, **self._ids(tokens, prompt=text.prompt_ids), **self._scores(text.prompt_tokens)}

    def next(self, text_delta: TextDelta, progress: _Progress) -> dict[str, Any]:
        delta = text_delta.delta
        text, tokens = ("", ()) if self._drop else (delta.text, delta.tokens)
        ids = self._ids(tokens, prompt=None if progress.begun else delta.prompt_ids)
        if not progress.begun:
            progress.begun = True
            text = self._echo(text_delta.prompt, delta.prompt_tokens) + text
            tokens = (*delta.prompt_tokens, *tokens)
        logprobs = self.logprobs(tokens, text, progress.offsets)
        finish = FINISH[delta.finish_reason] if delta.finish_reason else None
        return {**_choice(text_delta.choice, text, logprobs, "length" if finish and self._drop else finish), **ids}

    @property
    def only_text(self) -> bool:
        """The event of a choice that has begun and not ended, which has only text."""
        return self._asked.logprobs is None and not self._drop and not self._asked.return_token_ids

    def _ids(self, tokens: Sequence[Token], prompt: tuple[int, ...] | None) -> dict[str, Any]:
        """Log-probabilities of the prompt come once."""
        if not self._asked.return_token_ids:
            return {}
        ids: dict[str, Any] = {"token_ids": [token.id for token in tokens]}
        return ids if prompt is None else {**ids, "prompt_token_ids": prompt}

    def _scores(self, prompt: tuple[Token, ...]) -> dict[str, Any]:
        top = self._asked.prompt_logprobs
        return {} if top is None else {"prompt_logprobs": prompt_logprobs(prompt, top)}

    def _echo(self, prompt: int, tokens: tuple[Token, ...]) -> str:
        if not self._asked.echo:
            return ""
        given = self._prompts[prompt]
        return given if isinstance(given, str) else b"".join(map(_token_bytes, tokens)).decode("utf-8", "replace")

    def logprobs(self, tokens: Sequence[Token], text: str, offsets: Offsets) -> dict[str, Any] | None:
        """The log-probabilities of the tokens in a piece of the text."""
        top = self._asked.logprobs
        return None if top is None else completion_logprobs(tokens, offsets.of(tokens, text), top)


@dataclass
class _Progress:
    """Part of one choice that a stream has sent."""

    texts: EventsOfText
    begun: bool = False
    offsets: Offsets = field(default_factory=Offsets)


class _CompletionStream:
    def __init__(self, shape: _CompletionShape, generation: Generation, told_usage: StreamOptions) -> None:
        self._shape, self._generation, self._include_usage = shape, generation, told_usage.include_usage
        self._running = RunningUsage() if told_usage.continuous_usage_stats else None
        self._only_text = shape.only_text and self._running is None
        self._choices: dict[int, _Progress] = {}

    def last_events(self) -> bytes:
        if not self._include_usage:
            return DONE
        return event({**self._shape.head, "choices": [], "usage": openai_usage(self._generation.usage)}) + DONE

    def events_of(self, text_delta: TextDelta) -> bytes:
        if self._running is not None:
            self._running.add(text_delta)
        progress = self._choices.get(text_delta.choice) or self._begin(text_delta.choice)
        if progress.begun and text_delta.delta.finish_reason is None and self._only_text:
            return progress.texts.event(text_delta.delta.text)
        return event(self._value(self._shape.next(text_delta, progress)))

    def _begin(self, index: int) -> _Progress:
        text_only = partial(_choice, index)
        progress = self._choices[index] = _Progress(EventsOfText(lambda text: self._value(text_only(text))))
        return progress

    def _value(self, choice: dict[str, Any]) -> dict[str, Any]:
        value = {**self._shape.head, "choices": [choice]}
        if self._include_usage:
            value["usage"] = None if self._running is None else self._running.told
        return value


def _choice(index: int, text: str, logprobs: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}


def _token_bytes(token: Token) -> bytes:
    return token.bytes or token.text.encode()
