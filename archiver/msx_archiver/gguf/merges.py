"""Vocabularies, and which tokens become one, in the order of tokenizer.json."""

from collections.abc import Iterator, Mapping
from math import isfinite

from msx_core.gguf.errors import GgufError

MOST_CHARACTERS = 256
"""Characters of a token whose merges are looked for, which takes the square of them."""
MOST_TOGETHER = 1 << 23
"""Characters of all these tokens; the largest vocabularies have 3 million."""


def vocabulary(tokens: list[str]) -> dict[str, int]:
    """Raises GgufError for a token that is there twice."""
    found = {token: number for number, token in enumerate(tokens)}
    if len(found) < len(tokens):
        number = next(number for number, token in enumerate(tokens) if found[token] != number)
        raise GgufError(f"tokens {number} and {found[tokens[number]]} are both {tokens[number][:40]!r}")
    return found


def written(merges: list[str], known: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Two tokens with a space between, as the file has them. Raises GgufError."""
    for merge in merges:
        place = merge.find(" ", 1)
        first, second = merge[:place], merge[place + 1 :]
        if place < 0 or not {first, second, first + second} <= known.keys():
            raise GgufError(f"tokenizer.ggml.merges: {merge[:40]!r} is not two tokens that make a third")
        yield first, second


def scored(known: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """SentencePiece joins the two neighbours whose token has the highest score: those of the best score are first.
    Raises GgufError."""
    if not all(map(isfinite, scores)):
        raise GgufError("tokenizer.ggml.scores has numbers that are not finite")
    if (characters := sum(map(len, known))) > MOST_TOGETHER:
        raise GgufError(f"its tokens have {characters:,} characters together; at most {MOST_TOGETHER:,} are read")
    found: list[tuple[str, str]] = []
    for token in sorted(known, key=lambda it: -scores[known[it]]):
        if len(token) > MOST_CHARACTERS:
            raise GgufError(f"token {known[token]} has {len(token)} characters; at most {MOST_CHARACTERS} are read")
        found += sorted(_pairs(token, known), key=lambda pair: (known[pair[0]], known[pair[1]]))
    return found


def _pairs(token: str, known: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for place in range(1, len(token)):
        if (first := token[:place]) in known and (second := token[place:]) in known:
            yield first, second
