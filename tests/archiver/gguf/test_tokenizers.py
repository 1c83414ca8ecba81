"""Tokenizers that are made of GGUF metadata make the tokens of those that the metadata was made of."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

from msx_archiver.errors import PackError  # noqa: E402
from msx_archiver.gguf import merges  # noqa: E402
from msx_archiver.gguf.files import made_files  # noqa: E402
from msx_archiver.gguf.pre_tokenizers import KNOWN  # noqa: E402
from msx_llm.text.divides import divides  # noqa: E402
from msx_llm.text.tokenizer import Tokenizer  # noqa: E402
from tests.gguf_models import BYTE, CONTROL, NORMAL, byte_level, small  # noqa: E402
from tests.llm import tokenizers_of_tests as known  # noqa: E402

ROOT = "tokenizer.ggml."
TEXTS = [
    "yes, a yes", "yesyes  ayes", "2024 é 漢字 🙂 don't", " \n\n yes\r\n", "", "<|im_start|>yes<|im_end|> a", "ＡＢ ﬁ",
    "<think> 123456 </think>", "a", "  yes", "Été 12 34", "\t\tcode(yes)  # a",
]  # fmt: skip


def tokenizer(folder: Path, more: dict[str, Any]) -> tuple[Tokenizer, dict[str, Any]]:
    files, _ = made_files(small(folder / "m.gguf", more))
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return Tokenizer.from_folder(folder), json.loads(files["tokenizer.json"])


@pytest.mark.parametrize("pre", KNOWN)
def test_byte_level(pre: str, tmp_path: Path) -> None:
    own, spec = tokenizer(tmp_path, byte_level(pre))
    for text in TEXTS:
        ids = own.encode(text, add_special_tokens=False)
        shown = "".join(own.token_text(id) for id in ids)
        if all(ord(letter) < 128 for letter in text):
            assert shown == text
        if not KNOWN[pre].composed:
            assert own.decode(ids, skip_special=False) == text
    assert divides(spec)  # long texts are tokenized in pieces


def test_special_tokens(tmp_path: Path) -> None:
    own, _ = tokenizer(tmp_path, byte_level())
    tokens = byte_level()[f"{ROOT}tokens"]
    ids = own.encode("<|im_start|>yes<|im_end|><think>", add_special_tokens=False)
    assert ids == [1, tokens.index("yes"), 2, tokens.index("<think>")]
    assert [own.special(id) for id in ids] == [True, False, True, False]
    assert own.eos == {0, 2}
    assert own.before == own.after == []


def test_words_and_digits_of_smollm(tmp_path: Path) -> None:
    """As Hugging Face's tokenizer of the model divides them."""
    own, _ = tokenizer(tmp_path, byte_level())
    reference = known.byte_level()
    pieces = tokenizers.pre_tokenizers
    words = pieces.Sequence([pieces.Digits(individual_digits=True), pieces.ByteLevel(add_prefix_space=False)])
    reference.pre_tokenizer = words
    for text in ("yes 2024", "don't  a", "a yes\n"):
        wanted = [reference.id_to_token(id) for id in reference.encode(text).ids]
        tokens = byte_level()[f"{ROOT}tokens"]
        assert [tokens[id] for id in own.encode(text, add_special_tokens=False)] == wanted


PIECES = ["▁", "a", "b", "c", "d", "▁a", "ab", "bc", "abc", "▁ab", "cd", "▁▁", "bcd", "▁abcd", "x"]
SCORES = [-20.0, -21.0, -22.0, -23.0, -24.0, -1.0, -3.0, -2.0, -9.0, -4.0, -2.5, -5.0, -7.0, -0.5, -25.0]


def sentence_piece(**more: Any) -> dict[str, Any]:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    kinds = [2, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(PIECES)
    own: dict[str, Any] = {"model": "llama", "tokens": tokens, "token_type": kinds, "scores": [0.0] * 259 + SCORES}
    own |= {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0, "merges": None, "pre": None, **more}
    return {f"{ROOT}{key}": value for key, value in own.items()} | {f"{ROOT}padding_token_id": None}


def joined(text: str) -> list[str]:
    """SentencePiece's own way: of all neighbours that make a piece, those of the best score are joined, the first ones
    of several."""
    parts = [*text.replace(" ", "▁")]
    scores = dict(zip(PIECES, SCORES, strict=True))
    while True:
        found = [(scores[one + two], -place) for place, (one, two) in enumerate(pairs(parts)) if one + two in scores]
        if not found:
            return parts
        place = -max(found)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def pairs(parts: list[str]) -> list[tuple[str, str]]:
    return [*pairwise(parts)]


@pytest.mark.parametrize("text", ["abcd", "a b", "abcabcd cd", "  bcd ab", "ddabc", "x abx", "bcbcd"])
@pytest.mark.parametrize("before", [True, False])
def test_sentence_piece(text: str, before: bool, tmp_path: Path) -> None:
    own, _ = tokenizer(tmp_path, sentence_piece(add_space_prefix=before))
    ids = own.encode(text)
    assert ids[0] == 1  # such texts begin with a token
    names = [*(["<unk>", "<s>", "</s>"]), *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    assert [names[id] for id in ids[1:]] == joined((" " if before else "") + text)
    assert own.decode(ids[1:]) == text


def test_characters_without_a_piece_are_bytes(tmp_path: Path) -> None:
    own, _ = tokenizer(tmp_path, sentence_piece())
    ids = own.encode("é", add_special_tokens=False)
    assert ids[-2:] == [3 + 0xC3, 3 + 0xA9]
    assert own.decode(ids) == "é"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"scores": [0.0]}, "tokenizer.ggml.scores has 1 entries for 274 tokens"),
        ({"scores": [float("inf")] * 274}, "tokenizer.ggml.scores has numbers that are not finite"),
        ({"scores": None}, "it has no tokenizer.ggml.scores"),
    ],
)
def test_scores_that_cannot_be(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(PackError, match=says):
        tokenizer(tmp_path, sentence_piece(**more))


def test_a_token_that_is_too_long(tmp_path: Path) -> None:
    given = sentence_piece()
    given[f"{ROOT}tokens"][-1] = "x" * 300
    with pytest.raises(PackError, match="token 273 has 300 characters; at most 256 are read"):
        tokenizer(tmp_path, given)


def test_tokens_together_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = sentence_piece()
    count = sum(map(len, given[f"{ROOT}tokens"]))
    monkeypatch.setattr(merges, "MOST_TOGETHER", count)
    tokenizer(tmp_path, given)
    monkeypatch.setattr(merges, "MOST_TOGETHER", count - 1)
    with pytest.raises(PackError, match=f"its tokens have {count:,} characters together; at most {count - 1:,}"):
        tokenizer(tmp_path, given)
