"""The handler base of language models: operations, and plain predictions made of them."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from msx_core.generation.wire import encode
from msx_sdk import Context, InvalidInput, PredictionError
from msx_sdk.generation import (
    Capabilities,
    Constraint,
    EmbedReply,
    EmbedRequest,
    GenerateDelta,
    GenerateRequest,
    Image,
    SamplingDefaults,
    SamplingParams,
    Token,
    TokenizeReply,
    TokenizeRequest,
)
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply
from msx_sdk.text_generation import TextGenerationHandler

CHATS = Capabilities(generate=True, chat=True)


class Recorder(TextGenerationHandler):
    """Answers "ab", an empty delta, and "c", and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.closed = 0

    def capabilities(self) -> Capabilities:
        return CHATS

    async def generate(self, request: GenerateRequest, context: Context) -> AsyncIterator[GenerateDelta]:
        self.asked.append(request)
        if request.prompt == "bad":
            raise InvalidInput("max_tokens: at most 7")
        try:
            for text in ("ab", "", "c"):
                yield GenerateDelta(text=text, tokens=(Token(id=1, text=text, bytes=b"\xff"),))
            yield GenerateDelta(finish_reason="eos")
        finally:
            self.closed += 1

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply:
        self.asked.append(request)
        return TokenizeReply(tokens=[], text=request.prompt or "")


class Embedder(TextGenerationHandler):
    async def embed(self, request: EmbedRequest, context: Context) -> EmbedReply:
        return EmbedReply(embedding=struct.pack("<2f", 0.5, len(request.input)), prompt_tokens=1)


def ask(handler: TextGenerationHandler, request: InferenceRequest) -> Reply:
    with LocalModel(handler) as model:
        return model.predict([request])[0]


def operation(name: str, message: msgspec.Struct) -> InferenceRequest:
    return InferenceRequest("r", {"body": Part(encode(message), "application/msgpack")}, operation=name)


def plain(body: Any) -> InferenceRequest:
    return InferenceRequest("r", {"body": Part(msgspec.json.encode(body), "application/json")})


def fields(**values: bytes) -> InferenceRequest:
    return InferenceRequest("r", {name: Part(value) for name, value in values.items()})


def request_of(request: InferenceRequest) -> GenerateRequest:
    handler = Recorder()
    reply = ask(handler, request)
    assert reply.body == b"abc"
    assert reply.headers == {"content-type": "text/plain; charset=utf-8"}
    asked: GenerateRequest = handler.asked[0]
    return asked


def refusal(request: InferenceRequest) -> str:
    failure = ask(Recorder(), request).failure
    assert failure is not None
    assert failure.status == 400
    return failure.message


def test_generate_is_one_delta_a_chunk() -> None:
    handler = Recorder()
    sent = GenerateRequest(prompt=(1, 2), params=SamplingParams(seed=2**64 - 1, stop=("x",)))
    reply = ask(handler, operation("generate", sent))
    assert handler.asked == [sent]
    deltas = [msgspec.msgpack.decode(chunk, type=GenerateDelta) for chunk in reply.chunks if chunk]
    assert [delta.text for delta in deltas] == ["ab", "", "c", ""]
    assert deltas[0].tokens[0].bytes == b"\xff"
    assert deltas[-1].finish_reason == "eos"
    assert handler.closed == 1


@pytest.mark.parametrize(
    ("asked", "named", "priority"),
    [("high", 0, -1), ("low", 0, 1), (" LOW ", 0, 1), ("normal", 0, 0), (None, 0, 0), ("high", 7, 7), ("low", -3, -3)],
)
def test_the_class_of_a_request_is_its_priority_unless_it_names_one(
    asked: str | None, named: int, priority: int
) -> None:
    handler, headers = Recorder(), Headers() if asked is None else Headers({"X-Msx-Priority": asked})
    request = operation("generate", GenerateRequest(prompt="x", priority=named))
    request.headers = headers
    ask(handler, request)
    request = plain({"prompt": "x", "priority": named})
    request.headers = headers
    ask(handler, request)
    assert [one.priority for one in handler.asked] == [priority, priority]


def test_integers_of_any_size_reach_the_handler() -> None:
    handler = Recorder()
    wide: list[dict[str, Any]] = [{"content": "hi", "tool_calls": [{"id": 10**30, "least": -(1 << 63) - 1}]}]
    assert ask(handler, operation("generate", GenerateRequest(messages=wide, tools=wide))).status == 200
    assert (handler.asked[0].messages, handler.asked[0].tools) == (wide, wide)


def test_tokenize_and_embed() -> None:
    reply = ask(Recorder(), operation("tokenize", TokenizeRequest(prompt="p")))
    assert msgspec.msgpack.decode(reply.body, type=TokenizeReply).text == "p"
    reply = ask(Embedder(), operation("embed", EmbedRequest(input="abc")))
    assert struct.unpack("<2f", msgspec.msgpack.decode(reply.body, type=EmbedReply).embedding) == (0.5, 3)


def test_what_a_handler_does_not_do() -> None:
    for name, request in (("embed", EmbedRequest(input="x")), ("tokenize", TokenizeRequest(prompt="x"))):
        failure = ask(TextGenerationHandler(), operation(name, request)).failure
        assert failure is not None
        assert (failure.status, failure.message) == (501, f"TextGenerationHandler does not {name} text")
    with LocalModel(Embedder(), name="e") as model:
        assert model.handler.owner.capabilities() == Capabilities(embed=True, model_id="e")


def test_a_message_that_is_none() -> None:
    request = InferenceRequest("r", {"body": Part(b"\x01", "application/msgpack")}, operation="generate")
    assert "the request is not a valid GenerateRequest" in refusal(request)


def test_a_stream_that_is_left_frees_what_the_engine_holds() -> None:
    handler = Recorder()
    request = plain({"prompt": "x"})
    with LocalModel(handler) as model:
        request.cancelled = True
        model.predict([request])
    assert handler.closed == 1


def test_a_plain_prompt_is_greedy() -> None:
    greedy = GenerateRequest(prompt="hello", params=SamplingParams(temperature=0))
    assert request_of(plain({"prompt": "hello"})) == greedy
    assert request_of(plain("hello")) == greedy
    assert request_of(InferenceRequest("r", {"body": Part(b"hello", "text/plain")})) == greedy
    assert request_of(fields(data=b"hello")) == greedy
    assert request_of(fields(prompt=b"hello")) == greedy


@pytest.mark.parametrize(
    ("given", "params"),
    [
        ({}, SamplingParams(temperature=0.5, top_k=7)),
        ({"temperature": 0.9, "top_k": 0}, SamplingParams(temperature=0.9)),
        ({"do_sample": False}, SamplingParams(temperature=0.0, top_k=7)),
        ({"do_sample": True}, SamplingParams(temperature=0.5, top_k=7)),
    ],
)
def test_the_models_own_sampling(given: dict[str, Any], params: SamplingParams) -> None:
    class Sampled(Recorder):
        def capabilities(self) -> Capabilities:
            return Capabilities(generate=True, sampling=SamplingDefaults(temperature=0.5, top_k=7))

    handler = Sampled()
    ask(handler, plain({"prompt": "p", **given}))
    assert handler.asked[0].params == params


def test_json_without_a_content_type() -> None:
    assert request_of(fields(data=b'{"prompt": "hello", "max_tokens": 3}')).params.max_tokens == 3
    assert request_of(fields(body=b'{"no": "prompt"}')).prompt == '{"no": "prompt"}'
    text = InferenceRequest("r", {"body": Part(b'{"prompt": 1}', "text/plain")})
    assert request_of(text).prompt == '{"prompt": 1}'


def test_parameters_at_the_top() -> None:
    asked = request_of(
        plain(
            {
                "messages": [{"role": "user", "content": "hi"}],
                "max_new_tokens": 5,
                "temperature": 0.5,
                "stop": "x",
                "logit_bias": {"7": -1},
                "constraint": {"kind": "regex", "value": "a+"},
                "top_k": None,
                "priority": 2,
                "stream": True,
            }
        )
    )
    assert asked.messages == [{"role": "user", "content": "hi"}]
    assert asked.priority == 2
    assert asked.params == SamplingParams(
        max_tokens=5,
        temperature=0.5,
        stop=("x",),
        logit_bias={7: -1.0},
        constraint=Constraint(kind="regex", value="a+"),
    )


def test_tgis_parameters() -> None:
    asked = request_of(
        plain({"inputs": "p", "parameters": {"max_new_tokens": 5, "do_sample": True, "seed": 3, "details": False}})
    )
    assert asked.prompt == "p"
    assert asked.params == SamplingParams(max_tokens=5, temperature=1.0, seed=3)


def test_the_fields_of_a_form() -> None:
    asked = request_of(
        fields(prompt=b"p", max_new_tokens=b"5", temperature=b"0.5", ignore_eos=b"true", stop_token_ids=b"[1]")
    )
    assert asked.params == SamplingParams(max_tokens=5, temperature=0.5, ignore_eos=True, stop_token_ids=(1,))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt": "x", "max_new_tokens": 0}, "max_new_tokens: expected `int` >= 1"),
        ({"prompt": "x", "max_tokens": "a"}, "max_tokens: expected `int | null`, got `str`"),
        ({"prompt": "x", "temperature": -1}, "temperature: expected `float` >= 0.0"),
        ({"prompt": "x", "logit_bias": {"a": 1}}, "logit_bias: expected `int`, got `str`"),
        ({"prompt": "x", "constraint": {"kind": "x"}}, "constraint.kind: invalid enum value 'x'"),
        ({"prompt": "x", "n": 2}, "n: unknown parameter of a plain prediction; known are add_generation_prompt, "),
        ({"prompt": "x", "details": True}, "details: unknown parameter"),
        ({"inputs": "x", "parameters": 5}, "parameters: expected an object, not int"),
        ({"prompt": ""}, "prompt: expected a text of at least one character, or token ids"),
        ({"prompt": "x", "inputs": "y"}, "prompt: expected exactly one of prompt, messages and inputs, found prompt"),
        ({}, "prompt: expected exactly one of prompt, messages and inputs, found none"),
        ([], 'expected a JSON object such as {"prompt": "The with statement"}, or the prompt as text'),
        ({"messages": 3}, "messages: expected `array | null`, got `int`"),
        ({"prompt": "bad"}, "max_tokens: at most 7"),
    ],
)
def test_a_wrong_value_is_named(body: Any, message: str) -> None:
    assert refusal(plain(body)).startswith(message)


def test_a_prompt_that_was_sent_as_a_form_is_told_the_header() -> None:
    told = refusal(fields(**{"An object": b""}))
    assert told.startswith("prompt: expected exactly one of prompt, messages and inputs, found none among the fields")
    assert "over HTTP a prompt alone needs the header Content-Type: text/plain" in told


def test_text_that_is_none() -> None:
    assert refusal(fields(prompt=b"\xff")) == "prompt: the text is not UTF-8"
    assert refusal(fields(prompt=b"x", logit_bias=b"{")).startswith("logit_bias: expected JSON: ")


def test_messages_need_a_template() -> None:
    class Bare(Recorder):
        def capabilities(self) -> Capabilities:
            return Capabilities(generate=True)

    failure = ask(Bare(), plain({"messages": []})).failure
    assert failure is not None
    assert failure.message == "messages: this model has no chat template; send a prompt"


IMAGE = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "x"}]}]


def test_a_worker_refuses_parts_that_are_not_text() -> None:
    """It neither checks nor fetches images, whatever its handler would do with one."""

    class Seeing(Recorder):
        def capabilities(self) -> Capabilities:
            return msgspec.structs.replace(CHATS, max_images=1)

    expected = 'messages[0].content[1]: {} text alone, {{"type": "text", "text": …}}, not \'image_url\'{}'
    assert refusal(plain({"messages": IMAGE})) == expected.format("this model reads", "")
    failure = ask(seeing := Seeing(), plain({"messages": IMAGE})).failure
    remedy = "; /v1/chat/completions takes images"
    assert failure is not None
    assert (failure.message, seeing.asked) == (expected.format("a prediction's messages are", remedy), [])
    assert request_of(plain({"messages": [{"role": "user", "content": ["a", {"text": "b"}]}]})).messages is not None


def test_images_come_as_they_are() -> None:
    image = Image(data=b"\x89PNG\0", media_type="image/png", width=3, height=2, digest="ab", at=0)
    handler = Recorder()
    for kind, name in ((GenerateRequest, "generate"), (TokenizeRequest, "tokenize")):
        assert ask(handler, operation(name, kind(prompt="x", images=(image,)))).status == 200
        assert handler.asked[-1].images == (image,)


def test_a_plain_embedding() -> None:
    assert ask(Embedder(), plain({"input": "abc"})).json() == [0.5, 3.0]
    assert ask(Embedder(), plain("abcd")).json() == [0.5, 4.0]
    failure = ask(Embedder(), plain({"input": "abc", "size": 3})).failure
    assert failure is not None
    known = "input, dimensions, truncate, truncate_left, normalize, prompt_name"
    assert failure.message == f"size: unknown parameter of an embedding; known are {known}"


def test_describe_and_explain() -> None:
    request = plain("x")
    request.headers = Headers({"describe": "True"})
    assert ask(Recorder(), request).json() == {"generate": True, "chat": True}
    request.headers = Headers({"explain": "True"})
    failure = ask(Recorder(), request).failure
    assert failure is not None
    assert failure.status == PredictionError(501, "").status
