from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import processors

from msx_llm.text import Tokenizer
from msx_sdk import InvalidInput
from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import TextSpan
from tests.llm.tokenizers_of_tests import EXAMPLE, byte_level, pieces

END = 262


def folder(path: Path, tokenizer: tokenizers.Tokenizer, **files: dict[str, Any]) -> Path:
    tokenizer.save(str(path / "tokenizer.json"))
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def test_of_the_example() -> None:
    tokenizer = Tokenizer.from_folder(EXAMPLE)
    ids = tokenizer.encode("the with statement")
    assert ids[0] == tokenizer.bos == 0
    assert tokenizer.decode(ids) == "the with statement"
    assert tokenizer.decode(ids, skip_special=False) == "<s>the with statement"
    assert tokenizer.encode("the with statement", add_special_tokens=False) == ids[1:]
    assert (tokenizer.eos, tokenizer.vocab_size) == (frozenset({1}), 2048)
    assert tokenizer.special(1)
    assert not tokenizer.special(2)


def test_the_ends_of_all_files(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "generation_config": {"eos_token_id": [3, 4]},
        "config": {"eos_token_id": 5},
        "tokenizer_config": {"eos_token": {"__type": "AddedToken", "content": "<|end|>"}},
    }
    assert Tokenizer.from_folder(folder(tmp_path, byte_level(), **files)).eos == {3, 4, 5, END}


def test_without_any_end(tmp_path: Path) -> None:
    files: dict[str, Any] = {"config": {"eos_token_id": None}, "tokenizer_config": {"eos_token": "<of another model>"}}
    assert Tokenizer.from_folder(folder(tmp_path, byte_level(), **files)).eos == frozenset()


NAMES = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ["<s>", "▁a"]),
        ({**NAMES}, ["<s>", "▁a"]),
        ({**NAMES, "add_bos_token": True, "add_eos_token": False}, ["<s>", "▁a"]),
        ({**NAMES, "add_bos_token": False}, ["▁a"]),
        ({**NAMES, "add_eos_token": True}, ["<s>", "▁a", "</s>"]),
        ({"add_bos_token": False, "add_eos_token": True}, ["<s>", "▁a"]),
    ],
)
def test_what_the_config_says_about_special_tokens(config: dict[str, Any], expected: list[str]) -> None:
    inner = pieces()
    tokenizer = Tokenizer(inner, config)
    assert [inner.id_to_token(token) for token in tokenizer.encode("a")] == expected
    assert tokenizer.encode("a", add_special_tokens=False) == [inner.token_to_id("▁a")]


def test_a_begin_that_only_the_config_adds() -> None:
    inner = byte_level()
    inner.add_special_tokens(["<s>"])
    tokenizer = Tokenizer(inner, {"bos_token": "<s>", "add_bos_token": True})
    assert tokenizer.encode("y") == [tokenizer.bos, *tokenizer.encode("y", add_special_tokens=False)]
    assert tokenizer.encode("") == [tokenizer.bos]


def test_a_frame_around_the_text() -> None:
    inner = pieces()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    ids = Tokenizer(inner).encode("<s>a")
    assert ids == inner.encode("<s>a").ids
    assert ids[:2] == [1, 1]


def test_the_end_comes_last() -> None:
    inner = pieces()
    inner.post_processor = processors.TemplateProcessing(single="$A <unk>", special_tokens=[("<unk>", 0)])
    assert Tokenizer(inner, {**NAMES, "add_bos_token": True, "add_eos_token": True}).encode("b")[-2:] == [0, 2]


def test_long_texts_are_not_cut() -> None:
    inner = byte_level()
    inner.enable_truncation(4)
    inner.enable_padding(length=20)
    assert len(Tokenizer(inner).encode("a b c d e f")) == 11


def test_text_of_single_tokens() -> None:
    tokenizer = Tokenizer(byte_level())
    first, second = tokenizer.encode("ÿ")
    assert (tokenizer.token_bytes(first), tokenizer.token_text(first)) == (b"\xc3", "\ufffd")
    assert (tokenizer.token_bytes(second), tokenizer.token_text(END)) == (b"\xbf", "<|end|>")


def test_spans() -> None:
    tokenizer = Tokenizer(pieces(), {**NAMES, "add_eos_token": True})
    spans = tokenizer.spans("a aé")
    assert [span.id for span in spans] == tokenizer.encode("a aé")
    piece = tokenizer.encode("a", add_special_tokens=False)[0]
    assert spans[:2] == [TextSpan(id=1, text="", start=0, stop=0), TextSpan(id=piece, text="a", start=0, stop=1)]
    assert [(span.text, span.start, span.stop) for span in spans[2:]] == [
        (" a", 1, 3),
        ("é", 3, 4),
        ("é", 3, 4),
        ("", 4, 4),
    ]
    assert tokenizer.spans("a aé", add_special_tokens=False) == spans[1:-1]


def test_half_a_character() -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        Tokenizer(byte_level()).encode("a\ud800")


def test_tokens_that_only_the_config_knows(tmp_path: Path) -> None:
    added = {"264": {"content": "<b>", "special": False}, "263": {"content": "<a>", "special": True, "lstrip": False}}
    config = {"added_tokens_decoder": {**added, str(END): {"content": "<|end|>", "special": True}}}
    tokenizer = Tokenizer.from_folder(folder(tmp_path, byte_level(), tokenizer_config=config))
    assert tokenizer.encode("<a><b>") == [263, 264]
    assert [tokenizer.special(263), tokenizer.special(264)] == [True, False]
    assert tokenizers.Tokenizer.from_str(tokenizer.to_json()).token_to_id("<b>") == 264


def test_files_that_do_not_agree(tmp_path: Path) -> None:
    config = {"added_tokens_decoder": {"9": {"content": "<|end|>", "special": True}}}
    with pytest.raises(HandlerLoadError, match=r"says that token '<\|end\|>' is 9, tokenizer\.json that it is 262"):
        Tokenizer.from_folder(folder(tmp_path, byte_level(), tokenizer_config=config))


def test_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"tokenizer\.json is missing"):
        Tokenizer.from_folder(tmp_path)


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 5}')
    with pytest.raises(HandlerLoadError, match=r"tokenizer\.json cannot be read: "):
        Tokenizer.from_folder(tmp_path)


def test_what_words_are_made_of() -> None:
    tokenizer = Tokenizer.from_folder(EXAMPLE)
    words = ("class", " class", "\n")
    found = tokenizer.sequences(words)
    texts = [tokenizer.decode(sequence) for sequence in found]
    assert texts == ["class", " class", "\n"]
    assert tokenizer.sequences(words) is found
    assert all(tokenizer.bos not in sequence for sequence in found)
