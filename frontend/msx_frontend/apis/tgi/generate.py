"""TGI's generation routes: `/generate`, `/generate_stream`, and `/`, which is either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msx_core.generation import GENERATE, Capabilities, GenerateDelta, Token
from msx_frontend.apis.tgi.request import TgiRequest, check, generate_request, held_schemas
from msx_frontend.apis.tgi.timings import Timings, compute_type
from msx_frontend.generation.directory import checked
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import CompleteTextReply, JsonReply, StreamedTextReply, event, model_header
from msx_frontend.generation.schemas import ignored
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.tgi_tokens import FINISH, described, likeliest, prefill, told
from msx_frontend.models.versions.model_version import ModelVersion


def generate(request: TextRequest) -> CompleteTextReply:
    return _whole(request, request.read(TgiRequest))


def generate_stream(request: TextRequest) -> StreamedTextReply:
    return _stream(request, request.read(TgiRequest))


def generate_compatible(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    """Reply with a list of one where nothing is streamed, as its clients expect."""
    asked = request.read(TgiRequest)
    return _stream(request, asked) if asked.stream else _whole(request, asked, in_list=True)


def _generation(request: TextRequest, asked: TgiRequest, *, stream: bool) -> tuple[ModelVersion, Generation]:
    version = request.directory.find_for_tgi(asked.model, GENERATE)
    offered = version.schema.capabilities or Capabilities()
    check(asked, offered, stream=stream)
    if asked.asked.adapter_id:
        checked(version, asked.asked.adapter_id)
    request.names = {"n": "best_of"}
    request.ignored = ignored(held_schemas(asked), offered.unheld_keywords)
    message = generate_request(asked, offered, request.image_finder(version), stream=stream)
    return version, Generation(version, [message], request.api.limits)


def _whole(request: TextRequest, asked: TgiRequest, *, in_list: bool = False) -> CompleteTextReply:
    timings = Timings(len(asked.inputs))
    version, generation = _generation(request, asked, stream=False)
    timings.validated()

    def write(texts: list[Text]) -> JsonReply:
        texts.sort(key=lambda text: text.mean_logprob, reverse=True)
        reply = _written(asked, texts[0])
        if asked.asked.details and len(texts) > 1:
            reply["details"]["best_of_sequences"] = [_sequence(asked, text) for text in texts[1:]]
        headers = [model_header(version), compute_type(version), *timings.headers(generation)]
        return JsonReply([reply] if in_list else reply, headers)

    return CompleteTextReply(generation, write)


def _stream(request: TextRequest, asked: TgiRequest) -> StreamedTextReply:
    request.will_stream()
    version, generation = _generation(request, asked, stream=True)
    headers = [model_header(version), compute_type(version), ("x-compute-characters", str(len(asked.inputs)))]
    return StreamedTextReply(generation, _TgiStream(asked, generation), headers)


class _TgiStream:
    """One event for each token; the last one has the complete text."""

    def __init__(self, asked: TgiRequest, generation: Generation) -> None:
        self._asked, self._generation = asked, generation
        self._text, self._index = Text(), 0

    def events_of(self, text_delta: TextDelta) -> bytes:
        return b"".join(self._events(text_delta.delta))

    def last_events(self) -> bytes:
        return b""

    def _events(self, delta: GenerateDelta) -> Iterator[bytes]:
        self._text.grow(delta)
        tokens = told(delta)
        for number, token in enumerate(tokens, 1):
            self._index += 1
            ended = delta.finish_reason is not None and number == len(tokens)
            text = self._text if ended else None
            yield event(_event(self._asked, self._index, token, text, self._generation))


def _event(asked: TgiRequest, index: int, token: Token, ended: Text | None, generation: Generation) -> dict[str, Any]:
    said: dict[str, Any] = {"index": index, "token": described(token), "generated_text": None, "details": None}
    if asked.asked.top_n_tokens:
        said["top_tokens"] = likeliest(token)
    if ended is not None:
        said["generated_text"] = _full(asked, ended)
    if ended is not None and asked.asked.details:
        said["details"] = {**_end(ended), "input_length": generation.usage.prompt}
    return said


def _written(asked: TgiRequest, text: Text) -> dict[str, Any]:
    if not asked.asked.details:
        return {"generated_text": _full(asked, text)}
    details = {**_end(text), "prefill": prefill(text.prompt_tokens), "tokens": [described(one) for one in text.tokens]}
    if asked.asked.top_n_tokens:
        details["top_tokens"] = [likeliest(token) for token in text.tokens]
    return {"generated_text": _full(asked, text), "details": details}


def _sequence(asked: TgiRequest, text: Text) -> dict[str, Any]:
    written = _written(asked, text)
    return {"generated_text": written["generated_text"], **written["details"]}


def _full(asked: TgiRequest, text: Text) -> str:
    return asked.inputs + text.text if asked.asked.return_full_text else text.text


def _end(text: Text) -> dict[str, Any]:
    return {"finish_reason": FINISH[text.finish_reason], "generated_tokens": len(text.tokens), "seed": text.seed}
