"""A model's tokenizer, as Hugging Face packs it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import tokenizers

from msx_core.tokenizer_files import read_object, special_tokens, token_ids, tokenizer_config
from msx_llm.text.divides import divides, drops_space
from msx_llm.text.loading import load_tokenizer
from msx_llm.text.pairs import PairFrame, cut, longest_first
from msx_llm.text.pieces import PIECE, pieces_of, place_before
from msx_llm.text.vocabulary import Vocabulary
from msx_llm.text.widest import WidestToken
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import TextSpan

NOT_UNICODE = "The text has half of a surrogate pair, which is not a character"
KEPT = 16
"""The number of word lists that are kept: applications send the same ones again and again."""


class Tokenizer:
    """Text to token ids and back. `eos` is all that ends a text, by any of the model's files; `before` and `after` are
    the special tokens around each text.

    `config` is the content of tokenizer_config.json. Its `add_bos_token` and `add_eos_token`, where it has them, count
    for more than tokenizer.json's post-processor, as for Llamas in Hugging Face transformers before version 5.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        config: dict[str, Any] | None = None,
        eos: frozenset[int] = frozenset(),
        piece: int = PIECE,
    ) -> None:
        self._tokenizer, config = tokenizer, config or {}
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        spec = json.loads(tokenizer.to_str())
        self._vocabulary = Vocabulary(tokenizer, spec.get("decoder"))
        self._divides, self._drops = divides(spec), drops_space(spec)
        self._piece, self._widest = piece, WidestToken.of(spec)
        added = tokenizer.get_added_tokens_decoder()
        self._special = {id: token.content for id, token in added.items() if token.special}
        named = special_tokens(config)
        self.bos, end = (self._id(named.get(name)) for name in ("bos_token", "eos_token"))
        self.eos = eos if end is None else eos | {end}
        before, after = self._frame()
        self.before = with_token(before, self.bos, config.get("add_bos_token"), at_end=False)
        self.after = with_token(after, end, config.get("add_eos_token"), at_end=True)
        self._pair = PairFrame.of(tokenizer)
        self.pair_frame = tokenizer.num_special_tokens_to_add(is_pair=True)
        self.sequences = lru_cache(KEPT)(self._sequences)
        self.vocab_size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @classmethod
    def from_folder(cls, folder: Path) -> Tokenizer:
        """Raises HandlerLoadError, which names the file."""
        config = tokenizer_config(folder)
        ends = [read_object(folder, name).get("eos_token_id") for name in ("generation_config.json", "config.json")]
        return cls(load_tokenizer(folder, config), config, frozenset().union(*map(token_ids, ends)))

    def to_json(self) -> str:
        """As a tokenizer.json."""
        return self._tokenizer.to_str()

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Raises InvalidInput if the text is not valid Unicode."""
        ids = self._ids(text)
        return [*self.before, *ids, *self.after] if add_special_tokens else ids

    def some(self, text: str, most: int, left: bool = False) -> tuple[list[int], bool]:
        """Ids without special tokens, and whether they are those of the whole text: at least the first `most`, or the
        last if `left`, without tokenizing much more. Raises InvalidInput if the text is not valid Unicode."""
        found, count, pieces = [], 0, self._pieces(text)
        for index, piece in in_order(pieces, left):
            found.append(self._ids(self._inner(piece, index)))
            count += len(found[-1])
            if count >= most:
                break
        whole = len(found) == len(pieces)
        return [id for ids in (reversed(found) if left else found) for id in ids], whole

    def part(self, text: str, most: int) -> str:
        """The beginning of the text that has its first `most` tokens, and not many more."""
        count, pieces = 0, self._pieces(text)
        for index, piece in enumerate(pieces[:-1]):
            count += len(self._ids(self._inner(piece, index)))
            if count >= most:
                return "".join(pieces[: index + 1])
        return text

    def least(self, text: str) -> int:
        """The fewest tokens that the text can have, without tokenizing it; 0 if nothing is known."""
        return self._widest.least(text)

    def pair(self, first: str, second: str, most: int | None = None, left: bool = False) -> tuple[list[int], list[int]]:
        """Ids and segments, with special tokens as the post-processor puts them. More than `most` ids are cut, of the
        longer text first; of each the beginning, if `left`. Raises InvalidInput if a text is not valid Unicode."""
        if most is None:
            return self._pair.joined(self._ids(first), self._ids(second))
        room = max(most - self.pair_frame, 0)
        parts = self._parts(first, second, room, left)
        sizes = longest_first(len(parts[0]), len(parts[1]), room)
        return self._pair.joined(*(cut(part, size, left) for part, size in zip(parts, sizes, strict=True)))

    def ending(self, text: str, kept: int, most: int | None = None) -> tuple[list[int], int]:
        """The text's ids, and how many of them are those of its last `kept` characters. More than `most` ids are cut
        in front of these. Raises InvalidInput if the text is not valid Unicode."""
        if most is not None and self._divides:
            place = place_before(text, len(text) - kept, self._piece)
            text = self.part(text[:place], most) + text[place:]
        encoding, start = self._encode(text), len(text) - kept
        end = sum(begin >= start for begin, _ in encoding.offsets)
        over = 0 if most is None else max(len(encoding.ids) - most, 0)
        body = len(encoding.ids) - end
        return encoding.ids[: max(body - over, 0)] + encoding.ids[body:], end

    def token_id(self, token: str) -> int | None:
        """Id of a token by its text in tokenizer.json."""
        return self._id(token)

    def spans(self, text: str, add_special_tokens: bool = True) -> list[TextSpan]:
        """The tokens, and the characters that each covers: none for a special token that was added; those that make up
        one character each cover all of it."""
        encoding = self._encode(text)
        spans = [
            TextSpan(id=id, text=text[a:b], start=a, stop=b)
            for id, (a, b) in zip(encoding.ids, encoding.offsets, strict=True)
        ]
        if not add_special_tokens:
            return spans
        before = [TextSpan(id=id, text="", start=0, stop=0) for id in self.before]
        return [*before, *spans, *(TextSpan(id=id, text="", start=len(text), stop=len(text)) for id in self.after)]

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        [text] = self._tokenizer.decode_batch([list(ids)], skip_special_tokens=skip_special)
        return text

    def _sequences(self, words: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """The tokens of each word, at the beginning of a text and after a space."""
        return tuple(dict.fromkeys(sequence for word in words for sequence in self._forms(word) if sequence))

    def _forms(self, word: str) -> Iterator[tuple[int, ...]]:
        yield tuple(self._ids(word))
        if not word[0].isspace():
            yield tuple(self._ids(f" {word}"))

    def special(self, token: int) -> bool:
        return token in self._special

    def special_among(self, ids: Iterable[int]) -> dict[int, str]:
        """The texts of those that are special tokens."""
        return {id: self._special[id] for id in ids if id in self._special}

    def token_bytes(self, token: int) -> bytes:
        """Bytes of the token in the middle of a text; b"" for one that does not exist."""
        return self._vocabulary[token]

    def token_text(self, token: int) -> str:
        """The same as text, with U+FFFD where it is part of a character."""
        return self._vocabulary[token].decode(errors="replace")

    def _pieces(self, text: str) -> list[str]:
        return pieces_of(text, self._piece) if self._divides else [text]

    def _inner(self, text: str, index: int) -> str:
        """A piece as it is to be tokenized: the space before it may be one that the tokenizer puts before each text."""
        return text[1:] if index and self._drops else text

    def _parts(self, first: str, second: str, room: int, left: bool) -> tuple[list[int], list[int]]:
        """The ids of both texts as far as they count where `room` of them are kept. Where both are longer and `room` is
        odd, it counts which is the longer one."""
        (one, ends), (other, other_ends) = (self.some(text, room + 1, left) for text in (first, second))
        if room % 2 and min(len(one), len(other)) > room and not (ends and other_ends):
            return self._ids(first), self._ids(second)
        return one, other

    def _ids(self, text: str) -> list[int]:
        try:
            [encoding] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        except TypeError:
            raise InvalidInput(NOT_UNICODE) from None
        ids: list[int] = encoding.ids
        return ids

    def _encode(self, text: str) -> tokenizers.Encoding:
        """Encode it with the places of the tokens, in a batch, for which the tokenizer releases the interpreter's
        lock."""
        try:
            return self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
        except TypeError:
            raise InvalidInput(NOT_UNICODE) from None

    def _id(self, text: str | None) -> int | None:
        return None if text is None else self._tokenizer.token_to_id(text)

    def _frame(self) -> tuple[list[int], list[int]]:
        """Tokens that the post-processor puts before and after a text."""
        inner, whole = (self._tokenizer.encode("a", add_special_tokens=special).ids for special in (False, True))
        for start in range(len(whole) - len(inner) + 1):
            if whole[start : start + len(inner)] == inner:
                return whole[:start], whole[start + len(inner) :]
        return [], []


def in_order(pieces: list[str], left: bool) -> Iterator[tuple[int, str]]:
    """Yield them from the beginning, or from the end if `left`."""
    numbered = list(enumerate(pieces))
    return iter(numbered[::-1] if left else numbered)


def with_token(tokens: list[int], token: int | None, wanted: bool | None, at_end: bool) -> list[int]:
    """The tokens with this token, without it, or unchanged if the option is None."""
    if wanted is None or token is None or (token in tokens) == wanted:
        return tokens
    if not wanted:
        return [it for it in tokens if it != token]
    return [*tokens, token] if at_end else [token, *tokens]
