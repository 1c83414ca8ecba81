from __future__ import annotations

from msx_frontend.llm.logprobs import chat_logprobs, completion_logprobs
from msx_sdk.generation import Token, TopToken

TOP = (TopToken(id=1, text="é", logprob=-0.5), TopToken(id=2, text="\N{REPLACEMENT CHARACTER}", logprob=float("-inf")))
TOKENS = [
    Token(id=9, text="a"),
    Token(id=1, text="é", logprob=-0.5, bytes="é".encode(), top=TOP),
    Token(id=0, text="</s>", logprob=-1.0, special=True),
]


def test_chat() -> None:
    first, second = chat_logprobs(TOKENS, 2)["content"]
    assert first == {"token": "a", "bytes": [97], "logprob": 0.0, "top_logprobs": []}
    assert (second["token"], second["bytes"], second["logprob"]) == ("é", [195, 169], -0.5)
    assert second["top_logprobs"] == [
        {"token": "é", "bytes": [195, 169], "logprob": -0.5},
        {"token": "\N{REPLACEMENT CHARACTER}", "bytes": None, "logprob": -9999.0},
    ]
    assert len(chat_logprobs(TOKENS, 1)["content"][1]["top_logprobs"]) == 1


def test_completion() -> None:
    assert completion_logprobs(TOKENS, 5) == {
        "tokens": ["a", "é"],
        "token_logprobs": [None, -0.5],
        "top_logprobs": [None, {"é": -0.5, "\N{REPLACEMENT CHARACTER}": -9999.0}],
        "text_offset": [5, 6],
    }
