from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.text import TextPiece, TextStream, Tokenizer
from msx_llm.text.stop import StopFinder
from tests.llm.tokenizers_of_tests import EXAMPLE, byte_level, pieces

BYTES = Tokenizer(byte_level())
PIECES = Tokenizer(pieces())
EXAMPLES = Tokenizer.from_folder(EXAMPLE)
KINDS = {"bytes": BYTES, "pieces": PIECES, "newer pieces": Tokenizer(pieces(legacy=False)), "example": EXAMPLES}
END, THINK = 262, 261
UNICODE = st.text(st.characters(codec="utf-8"))


def ids(text: str, tokenizer: Tokenizer = BYTES) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def shown(stream: TextStream, tokens: list[int]) -> tuple[list[str], str | None]:
    """All pieces, to the first stop string or the end."""
    texts = []
    for token in tokens:
        piece = stream.push(token)
        texts.append(piece.text)
        if piece.stop is not None:
            assert stream.finish() == ""
            return texts, piece.stop
    return [*texts, stream.finish()], None


@given(UNICODE)
def test_the_pieces_are_the_text(text: str) -> None:
    texts, _ = shown(TextStream(BYTES), ids(text))
    assert "".join(texts) == BYTES.decode(ids(text)) == text


@given(st.lists(st.integers(0, 300)), st.booleans())
def test_the_pieces_of_any_tokens(tokens: list[int], skip_special: bool) -> None:
    texts, _ = shown(TextStream(BYTES, skip_special=skip_special), tokens)
    assert "".join(texts) == BYTES.decode(tokens, skip_special)


@pytest.mark.parametrize("kind", KINDS)
@given(text=UNICODE)
def test_what_follows_a_prompt(kind: str, text: str) -> None:
    tokenizer = KINDS[kind]
    prompt, whole = ids("a", tokenizer), ids("a" + text, tokenizer)
    if whole[: len(prompt)] == prompt:
        texts, _ = shown(TextStream(tokenizer), whole[len(prompt) :])
        assert "".join(texts) == tokenizer.decode(whole)[1:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["😀é漢", "👩‍👩‍👧", "a😀 b"])
def test_no_half_characters(kind: str, text: str) -> None:
    texts, _ = shown(TextStream(KINDS[kind]), ids(text, KINDS[kind]))
    assert "\ufffd" not in "".join(texts)
    assert "".join(texts).strip() == text


def test_a_character_comes_with_its_last_byte() -> None:
    stream = TextStream(BYTES)
    *before, last = ids("😀")
    assert [stream.push(token).text for token in before] == [""] * len(before)
    assert stream.push(last) == TextPiece("😀")


def test_a_character_that_never_becomes_whole() -> None:
    stream = TextStream(BYTES)
    assert stream.push(ids("😀")[0]) == TextPiece()
    assert stream.finish() == "\ufffd"
    assert stream.finish() == ""


def test_special_tokens() -> None:
    tokens = [*ids("a"), END, *ids("b"), THINK]
    assert "".join(shown(TextStream(BYTES), tokens)[0]) == "ab<think>"
    assert "".join(shown(TextStream(BYTES, skip_special=False), tokens)[0]) == "a<|end|>b<think>"


WORDS = st.text("abcé😀 ", max_size=15)
STOPS = st.lists(st.text("abcé😀 ", min_size=1, max_size=4), max_size=3).map(tuple)


@given(WORDS, STOPS, st.booleans())
def test_stop_strings_never_leak(text: str, stops: tuple[str, ...], keep: bool) -> None:
    texts, stop = shown(TextStream(BYTES, stops, keep), ids(text))
    found = StopFinder(stops).feed(text)
    if found is None:
        assert ("".join(texts), stop) == (text, None)
    else:
        assert ("".join(texts), stop) == (text[: found.end if keep else found.start], found.stop)


def test_a_stop_string_in_the_middle_of_a_token() -> None:
    stream = TextStream(BYTES, ("es",))
    (token,) = ids("yes")
    assert stream.push(token) == TextPiece("y", "es")
    assert stream.push(token) == TextPiece()
    assert stream.finish() == ""


def test_what_might_become_a_stop_string_is_held_back() -> None:
    stream = TextStream(BYTES, ("</s>",))
    pieces = [stream.push(token).text for token in ids("a</b</")]
    assert pieces == ["a", "", "", "</b", "", ""]
    assert stream.finish() == "</"


@pytest.mark.parametrize(("keep", "last"), [(False, "<"), (True, "<<|end|>")])
def test_a_special_token_as_stop_string(keep: bool, last: str) -> None:
    assert shown(TextStream(BYTES, ("<|end|>",), keep), [*ids("a<"), END]) == (["a", "", last], "<|end|>")


def test_stop_strings_do_not_count_in_the_first_tokens() -> None:
    text, stop = shown(TextStream(BYTES, ("b", "cd"), min_tokens=4), ids("abcdab"))
    assert ("".join(text), stop) == ("abcda", "b")
    assert shown(TextStream(BYTES, ("<|end|>",), min_tokens=2), [END, *ids("a"), END]) == (["", "a", ""], "<|end|>")


def test_nothing_of_a_long_text_is_kept() -> None:
    stream = TextStream(BYTES, ("x" * 10,))
    for token in ids("ab 😀" * 1_000):
        stream.push(token)
    assert len(stream._held) < 10
