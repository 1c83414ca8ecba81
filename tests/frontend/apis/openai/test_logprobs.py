from __future__ import annotations

from itertools import pairwise

import pytest

from msx_frontend.apis.openai.logprobs import Offsets, chat_logprobs, completion_logprobs, prompt_logprobs
from msx_sdk.generation import Token, TopToken

TOP = (TopToken(id=1, text="é", logprob=-0.5), TopToken(id=2, text="\N{REPLACEMENT CHARACTER}", logprob=float("-inf")))
TOKENS = [
    Token(id=9, text="a"),
    Token(id=1, text="é", logprob=-0.5, bytes="é".encode(), top=TOP),
    Token(id=0, text="</s>", logprob=-1.0, special=True),
]


def test_chat() -> None:
    first, second, end = chat_logprobs(TOKENS, 2)["content"]
    assert first == {"token": "a", "bytes": [97], "logprob": 0.0, "top_logprobs": []}
    assert (second["token"], second["bytes"], second["logprob"]) == ("é", [195, 169], -0.5)
    assert second["top_logprobs"] == [
        {"token": "é", "bytes": [195, 169], "logprob": -0.5},
        {"token": "\N{REPLACEMENT CHARACTER}", "bytes": None, "logprob": -9999.0},
    ]
    assert (end["token"], end["logprob"]) == ("</s>", -1.0)
    assert len(chat_logprobs(TOKENS, 1)["content"][1]["top_logprobs"]) == 1


def test_completion() -> None:
    assert completion_logprobs(TOKENS, [5, 6, 7], 2) == {
        "tokens": ["a", "é", "</s>"],
        "token_logprobs": [None, -0.5, -1.0],
        "top_logprobs": [None, {"é": -0.5, "\N{REPLACEMENT CHARACTER}": -9999.0}, {}],
        "text_offset": [5, 6, 7],
    }


def test_of_likely_tokens_with_the_same_text_the_likeliest_counts() -> None:
    top = (TopToken(id=1, text="?", logprob=-0.5), TopToken(id=2, text="?", logprob=-3.0))
    assert completion_logprobs([Token(id=1, text="?", logprob=-0.5, top=top)], [0], 2)["top_logprobs"] == [{"?": -0.5}]


def test_of_a_prompt() -> None:
    top = tuple(TopToken(id=n, text=f"t{n}", logprob=-float(n)) for n in (1, 2, 3))
    prompt = [
        Token(id=9, text="a"),
        Token(id=8, text="é", logprob=float("-inf"), rank=70, top=top),
        Token(id=2, text="t2", logprob=-2.0, rank=2, top=top),
        Token(id=3, text="t3", logprob=-3.0, top=()),
    ]
    first, second = entry(-1.0, 1, "t1"), entry(-2.0, 2, "t2")
    third = {"3": entry(-3.0, None, "t3")}
    assert prompt_logprobs(prompt, 2) == [
        None,
        {"8": entry(-9999.0, 70, "é"), "1": first, "2": second},
        {"2": second, "1": first},
        third,
    ]
    assert prompt_logprobs(prompt, 0) == [None, {"8": entry(-9999.0, 70, "é")}, {"2": second}, third]


def test_of_tokens_that_are_as_likely_the_own_one_has_the_better_rank() -> None:
    top = (TopToken(id=1, text="x", logprob=-1.0), TopToken(id=2, text="y", logprob=-1.0))
    (places,) = prompt_logprobs([Token(id=2, text="y", logprob=-1.0, rank=1, top=top)], 2)
    assert places == {"2": entry(-1.0, 1, "y"), "1": entry(-1.0, 1, "x")}


def entry(logprob: float, rank: int | None, text: str) -> dict[str, object]:
    return {"logprob": logprob, "rank": rank, "decoded_token": text}


def token(text: str, *, special: bool = False, data: bytes = b"") -> Token:
    return Token(id=0, text=text, special=special, bytes=data)


BOS, EOS = token("<s>", special=True), token("</s>", special=True)
PARTS = [token("\N{REPLACEMENT CHARACTER}", data=bytes([byte])) for byte in "é".encode()]


@pytest.mark.parametrize(
    ("tokens", "text", "offsets"),
    [
        ([BOS, token("the"), token(" sea"), EOS], "the sea", [0, 0, 3, 7]),
        ([BOS, token(" the"), token(" sea")], "the sea", [0, 0, 3]),
        ([BOS, token("a")], "<s>a", [0, 3]),
        ([token("a"), *PARTS, token("b")], "aéb", [0, 1, 1, 2]),
    ],
)
def test_where_tokens_begin(tokens: list[Token], text: str, offsets: list[int]) -> None:
    assert Offsets().of(tokens, text) == offsets
    pieces = Offsets()
    shown = [text[begin:end] for begin, end in pairwise([*offsets, len(text)])]
    assert [place for one, piece in zip(tokens, shown, strict=True) for place in pieces.of([one], piece)] == offsets
