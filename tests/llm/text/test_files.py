from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_core.tokenizer_files import read_object, special_tokens, token_ids, tokenizer_config
from msx_sdk.errors import HandlerLoadError


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read_object(tmp_path, "config.json") == {}


@pytest.mark.parametrize("text", ["{", "[]", "\udc80"])
def test_a_file_that_is_not_an_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(HandlerLoadError, match=r"config\.json is not"):
        read_object(tmp_path, "config.json")


def test_a_byte_order_mark_and_a_pointer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": 1}', "utf-8-sig")
    assert read_object(tmp_path, "config.json") == {"a": 1}
    (tmp_path / "config.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(HandlerLoadError, match=r"config\.json is not JSON: it is a pointer of Git LFS"):
        read_object(tmp_path, "config.json")


@pytest.mark.parametrize(
    ("value", "ids"),
    [(2, {2}), ([1, 2], {1, 2}), (None, set()), ([], set()), ("2", set()), (True, set()), ([1, None], {1})],
)
def test_ends(value: Any, ids: set[int]) -> None:
    assert token_ids(value) == ids


def test_special_tokens_are_texts_or_objects() -> None:
    config = {"bos_token": {"content": "<s>", "special": True}, "eos_token": "</s>", "pad_token": None, "x": "y"}
    assert special_tokens(config) == {"bos_token": "<s>", "eos_token": "</s>"}


def test_special_tokens_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "special_tokens_map.json").write_text('{"bos_token": "<a>", "eos_token": "<b>"}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<c>"}')
    assert special_tokens(tokenizer_config(tmp_path)) == {"bos_token": "<a>", "eos_token": "<c>"}
