"""The tokens of a text, and the texts of tokens, for clients that ask for them alone."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msx_sdk.errors import InvalidInput
from msx_sdk.generation import TextSpan, TokenizeReply, TokenizeRequest

MOST_SPANS = 131_072
"""Tokens of one reply: some megabytes."""


class Speller(Protocol):
    """A tokenizer; one that `is_fast` says where in the text each token stands."""

    is_fast: bool
    all_special_ids: Sequence[int]

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...

    @property
    def __call__(self) -> Callable[..., Any]: ...


def text_of(tokenizer: Speller, request: TokenizeRequest, vocab_size: int) -> TokenizeReply:
    """The text of a request's ids. Raises InvalidInput for one that the model does not have."""
    ids = list(request.ids or ())
    if beyond := [token for token in ids if token >= vocab_size]:
        raise InvalidInput(f"tokens: the model has no token {beyond[0]}, its tokens are 0 to {vocab_size - 1}")
    return TokenizeReply(tokens=[], text=tokenizer.decode(ids, skip_special_tokens=request.skip_special_tokens))


def spans_of(tokenizer: Speller, written: str | list[int], *, add_special: bool) -> TokenizeReply:
    """The tokens of a text; or of tokens that a chat template has written. Raises InvalidInput for too many."""
    if isinstance(written, str):
        text, spans = written, _spans(tokenizer, written, add_special)
    else:
        text, spans = tokenizer.decode(written), _pieces(tokenizer, written)
    special = set(tokenizer.all_special_ids)
    found = {one.id: tokenizer.decode([one.id]) for one in spans if one.id in special}
    return TokenizeReply(tokens=spans, text=text, special=found)


def _spans(tokenizer: Speller, text: str, add_special: bool) -> list[TextSpan]:
    if not getattr(tokenizer, "is_fast", False):
        return _pieces(tokenizer, tokenizer.encode(text, add_special_tokens=add_special))
    made = tokenizer(text, add_special_tokens=add_special, return_offsets_mapping=True)
    ids, places = made["input_ids"], made["offset_mapping"]
    _check_count(ids)
    return [
        TextSpan(id=id, text=text[start:stop], start=start, stop=stop)
        for id, (start, stop) in zip(ids, places, strict=True)
    ]


def _pieces(tokenizer: Speller, ids: list[int]) -> list[TextSpan]:
    """Places by the lengths of the tokens' own texts, for tokenizers that know no others."""
    _check_count(ids)
    spans, at = [], 0
    for id in ids:
        text = tokenizer.decode([id])
        spans.append(TextSpan(id=id, text=text, start=at, stop=at + len(text)))
        at += len(text)
    return spans


def _check_count(ids: Sequence[int]) -> None:
    if len(ids) > MOST_SPANS:
        raise InvalidInput(
            f"prompt: it has more than {MOST_SPANS} tokens, the most of one reply; send its parts one by one"
        )
