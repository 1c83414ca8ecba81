"""The table of docs/language-models.md: what becomes of each member that a client can send."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.apis.openai.completions import CompletionRequest
from msx_frontend.apis.openai.responses_request import ResponsesRequest
from msx_frontend.generation.chat_request import ChatRequest
from msx_frontend.generation.unserved import UNSERVED, unserved
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import ALL, Speaker, refused, words
from tests.loops import run

PAGE = (Path(__file__).parents[3] / "docs" / "language-models.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|", re.MULTILINE)
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
KINDS: dict[str, type[msgspec.Struct]] = dict(
    zip(PATHS, (ChatRequest, CompletionRequest, ResponsesRequest), strict=True)
)
TABLE = {(path, row[0]): row[place] for row in ROW.findall(PAGE) for place, path in enumerate(PATHS, 1)}
LEAST: dict[str, dict[str, Any]] = {
    PATHS[0]: {"messages": [{"role": "user", "content": "hi"}]},
    PATHS[1]: {"prompt": "hi"},
    PATHS[2]: {"input": "hi"},
}
OFFERED: Capabilities = msgspec.structs.replace(ALL, template_variables=(), beam_search=True)
VALUES: dict[str, Any] = {"n": 2, "top_logprobs": 1, "include": ["message.output_text.logprobs"], "prompt_logprobs": 0}
"""Values of members that are not of any type."""
VALUES |= {"media_io_kwargs": {"image": {}}, "mm_processor_kwargs": {"max_pixels": 9}}
VALUES |= {"truncation": "auto", "store": True, "include_usage": True, "stream_options": {"include_obfuscation": True}}

SAMPLING_OF_VLLM = (
    "use_beam_search top_k min_p repetition_penalty length_penalty stop_token_ids include_stop_str_in_output "
    "ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens allowed_token_ids "
    "prompt_logprobs add_special_tokens response_format structured_outputs priority request_id "
    "return_tokens_as_token_ids return_token_ids cache_salt kv_transfer_params vllm_xargs repetition_detection "
    "guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern "
    "logits_processors stream_options"
)
OF_VLLM = {
    PATHS[0]: f"{SAMPLING_OF_VLLM} bad_words echo add_generation_prompt continue_final_message documents chat_template "
    "chat_template_kwargs media_io_kwargs mm_processor_kwargs include_reasoning structural_tag thinking_token_budget",
    PATHS[1]: f"{SAMPLING_OF_VLLM} prompt_embeds",
    PATHS[2]: "request_id media_io_kwargs mm_processor_kwargs priority cache_salt enable_response_messages top_k "
    "previous_input_messages structured_outputs repetition_penalty seed stop ignore_eos vllm_xargs kv_transfer_params "
    "ec_transfer_params chat_template_kwargs include_reasoning session_id watermarking logit_bias presence_penalty "
    "frequency_penalty skip_special_tokens include_stop_str_in_output",
}


def cells(*said: str) -> list[tuple[str, str]]:
    return [place for place, cell in TABLE.items() if cell in said]


def body(path: str, member: str) -> dict[str, Any]:
    return {**LEAST[path], member: VALUES.get(member, "x")}


@pytest.mark.parametrize("path", PATHS)
def test_the_table_has_all_that_is_read(path: str) -> None:
    kind = KINDS[path]
    done = set(kind.__struct_fields__) - set(unserved(kind))
    assert done - {name for at, name in cells("done", "told", "refused", "ignored") if at == path} == set()
    assert {name for at, name in cells("done") if at == path} - done == set()


@pytest.mark.parametrize("path", PATHS)
def test_the_table_has_all_of_vllm(path: str) -> None:
    assert [name for name in OF_VLLM[path].split() if TABLE.get((path, name), "–") == "–"] == []


@pytest.mark.parametrize(("path", "member"), cells("refused"))
def test_what_is_refused(path: str, member: str) -> None:
    error = run(refused(Speaker(models={"m": OFFERED}), path, body(path, member), 400))["error"]
    assert error["param"] == member
    assert error["message"].startswith(f"{member}: ")


@pytest.mark.parametrize(("path", "member"), cells("ignored", "told"))
def test_what_has_no_effect(path: str, member: str) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], {"m": OFFERED})
        plain = await speaker.ask(path, LEAST[path])
        speaker.script = [words("a")]
        exchange = await speaker.ask(path, {**body(path, member), "stream": False} | _streamed(member))
        assert exchange.status == 200, exchange.body
        assert speaker.asked[1] == msgspec.structs.replace(speaker.asked[0], stream=speaker.asked[1].stream)
        assert exchange.headers.get("x-msx-ignored", "") == (member if TABLE[path, member] == "told" else "")
        assert plain.headers.get("x-msx-ignored") is None

    run(test())


def _streamed(member: str) -> dict[str, Any]:
    return {"stream": True} if member == "stream_options" else {}


def test_nothing_is_refused_that_is_not_in_the_table() -> None:
    all_refused = {(path, name) for path, kind in KINDS.items() for name in unserved(kind)}
    assert all_refused <= set(cells("refused"))
    assert UNSERVED.keys() == {name for _, name in all_refused}


@pytest.mark.parametrize("value", [None, False, [], {}, ""])
def test_what_asks_for_nothing_is_taken(value: Any) -> None:
    async def test() -> None:
        for path, kind in KINDS.items():
            nothing = dict.fromkeys(unserved(kind), value)
            exchange = await Speaker([words("a")]).ask(path, {**LEAST[path], **nothing})
            assert exchange.status == 200, exchange.body

    run(test())


def test_text_is_the_modality() -> None:
    async def test() -> None:
        asked = {**LEAST[PATHS[0]], "modalities": ["text"], "function_call": "none"}
        assert (await Speaker([words("a")]).ask(PATHS[0], asked)).status == 200

    run(test())


def test_kserve_refuses_them_too() -> None:
    asked = {"text_input": "x", "parameters": {"prompt_logprobs": 1}}
    error = run(refused(Speaker(), "/v2/models/m/generate", asked, 400))["error"]
    assert error.startswith("prompt_logprobs: not served here; /v1/completions")
    asked = {"text_input": "x", "parameters": {"n": 2}}
    assert run(refused(Speaker(), "/v2/models/m/generate", asked, 400))["error"].startswith("n: ")
