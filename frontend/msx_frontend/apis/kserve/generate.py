"""KServe's `/v2/models/{model}/generate` and `/generate_stream`: the Open Inference Protocol, as Triton extends it."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_core.generation import GENERATE, Capabilities, FinishReason, GenerateRequest, Token
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import CompleteTextReply, EventsOfText, JsonReply, StreamedTextReply, event
from msx_frontend.generation.sampling import SamplingFields, ignored_of, names_of, sampling_params
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.tgi_tokens import FINISH, Finish, TextToken, described
from msx_frontend.generation.truncation import most_beside
from msx_frontend.models.versions.model_version import ModelVersion


class GenerateParameters(SamplingFields, kw_only=True):
    details: bool | None = None


class KserveRequest(msgspec.Struct, kw_only=True):
    text_input: str
    id: str | None = None
    parameters: GenerateParameters | None = None


class TokenDetails(msgspec.Struct):
    finish_reason: Finish | None
    logprobs: list[TextToken]


class KserveText(msgspec.Struct):
    """A reply, or one event of a stream. For /openapi.json alone: replies are written without it."""

    text_output: str
    model_name: str
    model_version: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    details: TokenDetails | msgspec.UnsetType = msgspec.UNSET


EXAMPLE = {"text_input": "Once upon a time", "parameters": {"max_tokens": 16}}


def generate(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    """`stream` among the parameters asks for a stream, as in Triton."""
    asked = request.read(KserveRequest)
    if asked.parameters is not None and asked.parameters.stream:
        return _stream(request, asked)
    version, generation = _generation(request, asked, stream=False)

    def write(texts: list[Text]) -> JsonReply:
        details = _details(texts[0].finish_reason, texts[0].tokens) if _detailed(asked) else {}
        return JsonReply({**_head(version, request, asked), "text_output": texts[0].text, **details})

    return CompleteTextReply(generation, write)


def generate_stream(request: TextRequest) -> StreamedTextReply:
    return _stream(request, request.read(KserveRequest))


def _stream(request: TextRequest, asked: KserveRequest) -> StreamedTextReply:
    request.will_stream()
    version, generation = _generation(request, asked, stream=True)
    return StreamedTextReply(generation, _KServeStream(_head(version, request, asked), detailed=_detailed(asked)))


class _KServeStream:
    def __init__(self, head: dict[str, Any], *, detailed: bool) -> None:
        self._head, self._detailed = head, detailed
        self._texts = EventsOfText(lambda text: {**head, "text_output": text})

    def last_events(self) -> bytes:
        return b""

    def events_of(self, text_delta: TextDelta) -> bytes:
        delta = text_delta.delta
        if not delta.text and delta.finish_reason is None:
            return b""
        if not self._detailed:
            return self._texts.event(delta.text)
        return event({**self._head, "text_output": delta.text, **_details(delta.finish_reason, delta.tokens)})


def _generation(request: TextRequest, asked: KserveRequest, *, stream: bool) -> tuple[ModelVersion, Generation]:
    version = request.directory.find(request.path["model"], GENERATE, request.path.get("version"))
    fields = asked.parameters or GenerateParameters()
    if fields.n not in (None, 1):
        raise WrongParameter("n", "the reply has room for one text")
    request.names = names_of(fields, prompt="text_input")
    request.ignored = ignored_of(fields, version)
    logprobs = 0 if fields.details else None
    offered = version.schema.capabilities or Capabilities()
    params = sampling_params(fields, offered, temperature=0.0, logprobs=logprobs)
    message = GenerateRequest(
        prompt=asked.text_input,
        params=params,
        stream=stream,
        priority=fields.priority or 0,
        truncate=most_beside(fields.truncate_prompt_tokens, offered, params.max_tokens),
    )
    return version, Generation(version, [message], request.api.limits)


def _head(version: ModelVersion, request: TextRequest, asked: KserveRequest) -> dict[str, Any]:
    head = {"model_name": version.called(request.path["model"]), "model_version": version.source.version}
    return head if asked.id is None else {"id": asked.id, **head}


def _detailed(asked: KserveRequest) -> bool:
    return asked.parameters is not None and bool(asked.parameters.details)


def _details(finish: FinishReason | None, tokens: tuple[Token, ...] | list[Token]) -> dict[str, Any]:
    reason = FINISH[finish] if finish else None
    return {"details": {"finish_reason": reason, "logprobs": [described(token) for token in tokens]}}
