"""Images by the APIs of OpenAI and TGI: what a worker gets, and each family's refusals."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from msx_sdk.generation import Capabilities, GenerateRequest, TextSpan, TokenizeReply
from tests.file_server import file_server
from tests.frontend.generation.images.samples import data_url, expected, limits, png
from tests.frontend.generation.speaker import ALL, Speaker, events, refused, say, words
from tests.loops import run, until

SEES: Capabilities = msgspec.structs.replace(ALL, max_images=2)
FILE, OTHER = png(), png(5, 4)
PART = {"type": "image_url", "image_url": {"url": data_url(FILE), "detail": "high"}}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def speaker(offered: Capabilities = SEES, answer: Any = None, **keys: Any) -> Speaker:
    given = words("a") if answer is None else answer
    return Speaker([given] if given else [], models={"m": offered}, image_limits=limits(**keys), size=3_000_000)


def chat(*parts: Any, **body: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, *parts]}], **body}


def content(asked: Any) -> Any:
    return asked.messages[0]["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_chat(stream: bool) -> None:
    async def test() -> None:
        model = speaker()
        reply = await model.ask(CHAT, chat(PART, {"type": "image_url", "image_url": data_url(OTHER)}, stream=stream))
        assert reply.status == 200
        assert reply.headers["x-msx-ignored"] == "messages[0].content[1].image_url.detail"
        (asked,) = model.asked
        assert asked.images == (one, other) == (expected(FILE), expected(OTHER, 5, 4))
        assert content(asked) == [
            {"type": "text", "text": "what?"},
            {"type": "image", "digest": one.digest},
            {"type": "image", "digest": other.digest},
        ]
        if stream:
            assert events(reply)[-1] == "[DONE]"

    one, other = expected(FILE), expected(OTHER, 5, 4)
    run(test())


def test_responses() -> None:
    async def test() -> None:
        model = speaker()
        message = {"role": "user", "content": [{"type": "input_text", "text": "what?"}, image]}
        called = {"type": "function_call", "name": "shot", "call_id": "1", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "1", "output": [{**image, "image_url": data_url(OTHER)}]}
        reply = await model.ask(RESPONSES, {"input": [message, called, output], "instructions": "Look."})
        assert reply.status == 200, reply.body
        assert reply.headers["x-msx-ignored"] == "input[0].content[1].detail, input[2].output[0].detail"
        (asked,) = model.asked
        assert asked.images == (expected(FILE), expected(OTHER, 5, 4))
        assert asked.messages[1]["content"][1] == {"type": "image", "digest": expected(FILE).digest}
        assert asked.messages[3]["content"] == [{"type": "image", "digest": expected(OTHER).digest}]

    image = {"type": "input_image", "image_url": data_url(FILE), "detail": "low"}
    run(test())


@pytest.mark.parametrize("path", ["/generate", "/generate_stream", "/"])
def test_tgi(path: str) -> None:
    """Its chat is OpenAI's route; its prompts have images as Markdown."""

    async def test() -> None:
        model = speaker()
        inputs = f"What is ![]({data_url(FILE)})? And![]({data_url(OTHER)})"
        assert (await model.ask(path, {"inputs": inputs})).status == 200
        (asked,) = model.asked
        assert asked.prompt == "What is ? And"
        assert asked.images == (expected(FILE, at=8), expected(OTHER, 5, 4, at=13))

    run(test())


@pytest.mark.parametrize("inputs", ["![](", "a ![x](y) b", "!["])
def test_markdown_that_is_no_image_of_tgis(inputs: str) -> None:
    async def test() -> None:
        model = speaker()
        assert (await model.ask("/generate", {"inputs": inputs})).status == 200
        assert [(one.prompt, one.images) for one in model.asked] == [(inputs, ())]

    run(test())


def test_the_markdown_of_a_model_that_reads_text_alone_is_text() -> None:
    async def test() -> None:
        model, inputs = speaker(ALL), "see ![](https://a.example/x.png)"
        assert (await model.ask("/generate", {"inputs": inputs})).status == 200
        assert [(one.prompt, one.images) for one in model.asked] == [(inputs, ())]

    run(test())


@pytest.mark.parametrize("path", ["/tokenize", "/chat_tokenize"])
def test_tokens_of_a_conversation(path: str) -> None:
    async def test() -> None:
        model = speaker(answer=[TokenizeReply(tokens=[TextSpan(id=1, text="a", start=0, stop=1)], text="a")])
        assert (await model.begin(path, chat(PART)).finish()).status == 200
        (asked,) = model.asked
        assert asked.images == (expected(FILE),)
        assert content(asked)[1] == {"type": "image", "digest": expected(FILE).digest}

    run(test())


BAD = {"type": "image_url", "image_url": data_url(b"no image")}
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (CHAT, chat(BAD), "messages[0].content[1].image_url", "the file is no PNG, JPEG, WebP or GIF"),
    (CHAT, chat(BAD, stream=True), "messages[0].content[1].image_url", "the file is no PNG"),
    (CHAT, chat(PART, PART, PART), "messages[0].content[3].image_url", "this model reads at most 2 images"),
    (RESPONSES, {"input": [{"role": "user", "content": [BAD]}]}, "input[0].content[0].image_url", "the file is no PNG"),
]


@pytest.mark.parametrize(("path", "body", "place", "reason"), REFUSED)
def test_openais_refusals(path: str, body: dict[str, Any], place: str, reason: str) -> None:
    error = run(refused(speaker(), path, body, 400))["error"]
    assert (error["param"], error["type"]) == (place, "invalid_request_error")
    assert error["message"].startswith(f"{place}: {reason}")


def test_tgis_refusals() -> None:
    said = run(refused(speaker(), "/generate", {"inputs": "a ![](data:x)"}, 422))
    assert said["error_type"] == "validation"
    assert said["error"].startswith("Input validation error: `inputs`: expected data:image/…;base64")
    said = run(refused(speaker(), "/chat_tokenize", chat(BAD), 422))
    assert said["error"].startswith("Input validation error: messages[0].content[1].image_url: the file is no PNG")


@pytest.mark.parametrize(
    ("path", "body", "place", "kind"),
    [
        (CHAT, chat(PART), "messages[0].content[1]", "image_url"),
        (
            RESPONSES,
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
            "input_image",
        ),
    ],
)
def test_models_that_read_text_alone(path: str, body: dict[str, Any], place: str, kind: str) -> None:
    error = run(refused(speaker(ALL), path, body, 400))["error"]
    assert error["message"] == f"{place}: expected a part of the type text; this model reads no {kind}"
    assert error["param"] == place


def test_images_of_hosts() -> None:
    """All of a request at a time; one that fails ends the others."""

    async def test() -> None:
        model = speaker(allowed_image_hosts=("127.0.0.1",))
        reply = await model.ask(CHAT, chat(*({"type": "image_url", "image_url": {"url": url}} for url in good)))
        assert reply.status == 200, reply.body
        assert model.asked[0].images == (expected(FILE), expected(OTHER, 5, 4))
        model = speaker(allowed_image_hosts=("127.0.0.1",))
        reply = await model.ask("/generate", {"inputs": f"![]({good[0]}) ![]({good[0]}x)"})
        assert (reply.status, reply.json["error"], model.jobs) == (
            422,
            "Input validation error: `inputs`: the image is not fetched: its host answers with HTTP 404",
            [],
        )

    with file_server() as web:
        good = web.put("/a", FILE), web.put("/b", OTHER)
        run(test())


@pytest.mark.parametrize(("room", "status"), [(50_000, 200), (39_000, 429)])
def test_bytes_that_are_fetched_are_held_until_the_answer(room: int, status: int) -> None:
    async def test() -> None:
        model = speaker(answer=[], allowed_image_hosts=("127.0.0.1",))
        model.held.limit = room
        other = model.held.hold(30_000)
        exchange = model.begin(CHAT, chat({"type": "image_url", "image_url": url}))
        if status == 200:
            await model.next_job()
            assert model.held.held - other.size > len(file)
            say(model.jobs[0], *words("a"))
        await exchange.finish()
        assert (exchange.status, model.held.held) == (status, other.size)

    file = png(more=10_000)
    with file_server() as web:
        url = web.put("/a", file)
        run(test())


def test_a_client_that_leaves_ends_the_fetching() -> None:
    async def test() -> None:
        model = speaker(allowed_image_hosts=("127.0.0.1",))
        exchange = model.begin(CHAT, chat({"type": "image_url", "image_url": url}))
        await until(lambda: web.asked)
        exchange.leave()
        released.set()
        await exchange.finish()
        assert (exchange.status, model.jobs) == (0, [])

    released = threading.Event()
    with file_server() as web:
        url = web.hang("/slow", released)
        run(test())


def test_a_large_image_is_read_once() -> None:
    """A megabyte goes to the worker as it came."""
    file = png(more=1 << 20)

    async def test() -> None:
        model = speaker()
        reply = await model.ask(CHAT, chat({"type": "image_url", "image_url": data_url(file)}))
        assert reply.status == 200, reply.body
        assert model.asked[0].images == (expected(file),)

    run(test())


def test_conversations_with_another_image_begin_otherwise() -> None:
    async def beginning(path: str, body: dict[str, Any]) -> Any:
        model = speaker()
        assert (await model.ask(path, body)).status == 200
        return model.jobs[0].beginning()

    async def test() -> None:
        for path, body in (
            (CHAT, lambda file: chat({"type": "image_url", "image_url": data_url(file)})),
            ("/generate", lambda file: {"inputs": f"![]({data_url(file)}) what?"}),
        ):
            first = await beginning(path, body(FILE))
            assert first == await beginning(path, body(FILE))
            assert first != await beginning(path, body(OTHER))
            assert len(first.text) < 1000, "the file itself is no part of it"

    run(test())


def test_a_request_says_no_image_where_there_is_none() -> None:
    async def test() -> None:
        model = speaker()
        await model.ask(CHAT, chat())
        assert model.asked == [
            msgspec.structs.replace(model.asked[0], messages=[{"role": "user", "content": "what?"}], images=())
        ]
        assert isinstance(model.asked[0], GenerateRequest)

    run(test())
