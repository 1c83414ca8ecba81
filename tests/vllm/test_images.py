"""Images of requests with a stub of vLLM: the same requests in test_real.py with the real one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, Image, SamplingParams, TokenizeRequest
from msx_sdk.testing import LocalModel
from msx_vllm.handler import VllmHandler
from msx_vllm.messages import illustrated
from msx_vllm.pixels import PixelRoom
from tests.vllm.cases import GREEDY, Case, Refusal, Refused, ask, used
from tests.vllm.pictures import BLUE, IMAGES, LIMIT, REFUSED_IMAGES, SIDE, asked, picture
from tests.vllm.test_handler import batch, engine_of

CONFIG: dict[str, Any] = {"vllm": {"max-model-len": 256, "limit-mm-per-prompt": {"image": LIMIT}}, "maxConcurrent": 3}


@pytest.fixture
def model(stub: None, here: Path) -> Iterator[LocalModel]:
    with LocalModel(VllmHandler, here, config=CONFIG) as model:
        yield model


@pytest.mark.parametrize("case", IMAGES, ids=lambda case: case.name)
def test_images_are_read(model: LocalModel, case: Case) -> None:
    deltas = ask(model, case.request, case.params)
    assert not isinstance(deltas, Refusal), deltas
    assert case.holds(deltas)


@pytest.mark.parametrize("case", REFUSED_IMAGES, ids=lambda case: case.name)
def test_images_that_are_refused(model: LocalModel, case: Refused) -> None:
    refusal = ask(model, case.request, case.params)
    assert isinstance(refusal, Refusal), refusal
    assert refusal.status == 400
    assert re.match(case.message, refusal.message), refusal.message


def test_vllm_gets_pixels_and_a_digest(model: LocalModel) -> None:
    deltas = ask(model, asked(picture(), picture(BLUE)), GREEDY)
    assert not isinstance(deltas, Refusal)
    assert used(deltas).prompt == len("what") + 2 * SIDE
    _, red, blue = engine_of(model).renderer.messages[0]["content"]
    assert (red["image_pil"].getpixel((0, 0)), blue["image_pil"].getpixel((0, 0))) == ((255, 0, 0), (0, 0, 255))
    assert red["uuid"] == picture().digest


def test_vllm_never_sees_members_of_parts_that_it_would_fetch(model: LocalModel) -> None:
    part = {"type": "text", "text": "a", "uuid": "1", "image_url": "http://169.254.169.254/", "video_url": "http://a/"}
    ask(model, {"messages": [{"role": "user", "content": [part]}]}, GREEDY)
    assert engine_of(model).renderer.messages[0]["content"] == [{"type": "text", "text": "a"}]


def test_the_limit_is_announced(model: LocalModel) -> None:
    assert model.handler.owner.capabilities().max_images == LIMIT


def test_other_models_read_text_alone(stub: None, here: Path) -> None:
    with LocalModel(VllmHandler, here, config={}) as model:
        assert model.handler.owner.capabilities().max_images == 0
        args = engine_of(model).args
        refusal = ask(model, asked(picture()), GREEDY)
    assert (args.limit_mm_per_prompt, args.mm_processor_cache_gb) == ({"audio": 0, "video": 0}, 0)
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith("messages[0].content[1]: this model reads text alone")


def test_tokens_of_messages_with_images(model: LocalModel) -> None:
    messages = asked(picture())["messages"]
    request = TokenizeRequest(messages=messages, images=(picture(),))
    reply = model._loop.run_until_complete(model.handler.owner.tokenize(request, model.context))
    assert len(reply.tokens) == len("what") + SIDE


def test_a_client_that_leaves_while_an_image_is_decoded_gives_its_room_back(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, loop = model.handler.owner.llm.images, model._loop
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def read(one: object) -> None:
        begun.set()
        await goes_on.wait()

    async def leave() -> None:
        request = GenerateRequest(params=SamplingParams(max_tokens=2), **asked(picture()))
        texts = model.handler.owner.generate(request, model.context.for_call(batch()))
        client = loop.create_task(anext(texts))
        await begun.wait()
        assert images._room._free == images._room._most - SIDE * SIDE
        client.cancel()
        await asyncio.wait([client])
        assert client.cancelled()

    monkeypatch.setattr(images, "_decoded", read)
    loop.run_until_complete(leave())
    assert images._room._free == images._room._most


def test_texts_do_not_wait_for_images(model: LocalModel) -> None:
    async def texts() -> list[str]:
        images = model.handler.owner.llm.images
        async with images._room.hold(images._room._most):
            waits = asyncio.create_task(anext(model.handler.owner.generate(request(picture()), call())))
            while not images._room._turn.locked():
                await asyncio.sleep(0)
            found = [delta.text async for delta in model.handler.owner.generate(request(), call())]
        await waits
        return found

    def request(*images: Image) -> GenerateRequest:
        return GenerateRequest(params=SamplingParams(max_tokens=2), **asked(*images))

    def call() -> Any:
        return model.context.for_call(batch())

    assert model._loop.run_until_complete(asyncio.wait_for(texts(), 120)) == ["u", "v"]


def test_room_for_pixels_is_had_in_turn() -> None:
    room, order = PixelRoom(10), []

    async def use(name: str, pixels: int, until: asyncio.Event) -> None:
        async with room.hold(pixels):
            order.append(name)
            await until.wait()

    async def three() -> None:
        first, rest = asyncio.Event(), asyncio.Event()
        rest.set()
        uses = [use("half", 6, first), use("whole", 10, rest), use("small", 1, rest)]
        tasks = [asyncio.create_task(one) for one in uses]
        while not order:
            await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*tasks)

    asyncio.run(three())
    assert order == ["half", "whole", "small"]


def test_more_pixels_than_there_is_room_for() -> None:
    async def use() -> None:
        async with PixelRoom(10).hold(11):
            pass

    with pytest.raises(
        InvalidInput, match="images: those of the request have 11 pixels together; at most 10 are decoded"
    ):
        asyncio.run(use())


def test_marks_stand_in_the_places_of_images() -> None:
    images = [picture(at=0), picture(at=2), picture(at=2)]
    assert illustrated("abc", images, lambda number: f"<{number}>") == "<1>ab<2><3>c"
    assert illustrated("abc", images, lambda number: None) == "abc"
