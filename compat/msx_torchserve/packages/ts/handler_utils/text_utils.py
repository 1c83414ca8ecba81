"""`ts.handler_utils.text_utils`: the functions of torchtext that TorchServe's text handlers use."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_TAG = re.compile(r"<br\s*/>")
_TOKEN = re.compile(r"[^\s'.,()!?\";:]+|['.,()!?]")


def ngrams_iterator(token_list: Sequence[str], ngrams: int) -> Iterator[str]:
    """The tokens, then all runs of two, of three, … of `ngrams` of them."""
    for size in range(1, ngrams + 1):
        for start in range(len(token_list) - size + 1):
            yield " ".join(token_list[start : start + size])


def get_tokenizer(tokenizer: Any, language: str = "en") -> Callable[[str], list[str]]:
    """`basic_english`, None for white space, or a function of one's own. Raises ValueError for another name."""
    if tokenizer is None:
        return str.split
    if tokenizer == "basic_english":
        if language != "en":
            raise ValueError(f"the tokenizer basic_english is for 'en', not {language!r}")
        return _basic_english
    if callable(tokenizer):
        function: Callable[[str], list[str]] = tokenizer
        return function
    raise ValueError(f"the tokenizer {tokenizer!r} is unknown: expected basic_english, None, or a function")


def _basic_english(line: str) -> list[str]:
    """Lower case; punctuation is a token of its own, and quotes, colons and semicolons are left out."""
    return _TOKEN.findall(_TAG.sub(" ", line.lower()))
