from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msx_frontend import __version__
from msx_frontend.apis.vllm import about
from tests.frontend.generation.speaker import Speaker
from tests.loops import run


def info(folder: Path, query: str = "") -> Any:
    async def test() -> Any:
        speaker = Speaker()
        speaker.versions["m"].source.model_dir = folder
        return await speaker.ask(f"/tokenizer_info{query}", method="GET")

    return run(test())


def write(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_the_version_needs_no_key() -> None:
    async def test() -> Any:
        def nobody(key: str | None) -> Any:
            raise AssertionError("asked for a key")

        return await Speaker(check_token=nobody).ask("/version", method="GET")

    assert run(test()).json == {"version": __version__}


def test_the_tokenizer(tmp_path: Path) -> None:
    special = {"content": "<s>", "lstrip": False, "special": True}
    config = {
        "tokenizer_class": "LlamaTokenizer",
        "bos_token": special,
        "added_tokens_decoder": {"1": special},
        "additional_special_tokens": [special, "</s>"],
        "vocab_file": "/home/them/vocab.json",
        "model_max_length": 512,
    }
    write(tmp_path, "tokenizer_config.json", config)
    write(tmp_path, "chat_template.jinja", "{{ messages }}")
    assert info(tmp_path, "?model=m").json == {
        "tokenizer_class": "LlamaTokenizer",
        "bos_token": "<s>",
        "added_tokens_decoder": {"1": "<s>"},
        "additional_special_tokens": ["<s>", "</s>"],
        "model_max_length": 512,
        "chat_template": "{{ messages }}",
    }


def test_a_template_in_the_configuration_is_the_one_that_is_told(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"chat_template": "own"})
    write(tmp_path, "chat_template.jinja", "other")
    assert info(tmp_path).json["chat_template"] == "own"


def test_a_folder_without_one(tmp_path: Path) -> None:
    reply = info(tmp_path)
    assert (reply.status, "tokenizer_config.json" in reply.json["error"]["message"]) == (404, True)


def test_files_that_cannot_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "tokenizer_config.json", "[]")
    reply = info(tmp_path)
    assert (reply.status, "not a JSON object" in reply.json["error"]["message"]) == (400, True)
    monkeypatch.setattr(about, "MOST", 1)
    reply = info(tmp_path)
    assert (reply.status, "at most 1" in reply.json["error"]["message"]) == (400, True)
