from typing import Any

import pytest
from msgspec.structs import replace

from msx_core.generation import Capabilities
from msx_frontend.generation.truncation import WHOLE, most_beside, most_tokens
from tests.frontend.generation.speaker import ALL, Speaker, refused, words
from tests.loops import run

OFFERED = Capabilities(max_input_tokens=255, max_total_tokens=256)
MODELS: dict[str, Capabilities | None] = {"m": replace(ALL, max_input_tokens=255, max_total_tokens=256)}
HELLO = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 16}
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", {"prompt": "hi"}),
    ("/v1/chat/completions", HELLO),
    ("/v1/responses", {"input": "hi", "max_output_tokens": 16}),
]


def test_a_number_is_taken_as_it_is() -> None:
    assert [most_tokens(asked, OFFERED) for asked in (None, 7, 999, WHOLE)] == [None, 7, 999, 255]
    assert [most_beside(asked, OFFERED, 16) for asked in (None, 7, 999)] == [None, 7, 999]


def test_as_many_as_leave_room_for_the_text() -> None:
    assert [most_beside(WHOLE, OFFERED, most) for most in (None, 1, 16, 255, 9000)] == [255, 255, 240, 1, 1]
    assert most_beside(WHOLE, Capabilities(max_input_tokens=9), 16) == 9


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_vllms_word_for_the_whole_context(path: str, body: dict[str, Any]) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], MODELS)
        assert (await speaker.ask(path, {**body, "truncate_prompt_tokens": -1})).status == 200
        assert speaker.asked[0].truncate == 240
        error = (await refused(Speaker(models=MODELS), path, {**body, "truncate_prompt_tokens": 0}, 400))["error"]
        assert error["message"] == "truncate_prompt_tokens: expected at least 1, or -1 for as many as the model reads"

    run(test())


def test_of_kserve() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], MODELS)
        body = {"text_input": "x", "parameters": {"max_tokens": 16, "truncate_prompt_tokens": -1}}
        assert (await speaker.ask("/v2/models/m/generate", body)).status == 200
        assert speaker.asked[0].truncate == 240

    run(test())


def test_no_token_allowed() -> None:
    async def test() -> None:
        error = (await refused(Speaker(), "/v1/chat/completions", {**HELLO, "allowed_token_ids": []}, 400))["error"]
        assert error["message"] == "allowed_token_ids: expected `array` of length >= 1"

    run(test())
