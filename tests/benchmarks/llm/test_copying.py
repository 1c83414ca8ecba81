"""Prompts in which the text stands, does not, or seems to."""

from __future__ import annotations

from benchmarks.llm.arrivals import Clients
from benchmarks.llm.copying import CopyingPrompts, follower
from msx_llm.speculation.ngram import NgramIndex

WORDS, OUTPUT = 8192, 20


def test_every_token_follows_one() -> None:
    assert len({follower(token, WORDS) for token in range(WORDS)}) == WORDS


def test_what_is_drafted_is_right_missing_or_wrong() -> None:
    prompts, drafts = CopyingPrompts(Clients(WORDS), 200), {}
    for kind, make in prompts.kinds().items():
        asked = make(OUTPUT)
        text = list(asked.prompt)
        said = []
        for _ in range(OUTPUT):
            said.append(NgramIndex(3).draft(text, 1))
            text.append(follower(text[-1], WORDS))
        drafts[kind] = [draft and draft[0] == token for draft, token in zip(said, text[-OUTPUT:], strict=True)]
        assert (len(asked.prompt), asked.output) == (200, OUTPUT)
    assert drafts == {"copying": [True] * OUTPUT, "random": [[]] * OUTPUT, "misleading": [False] * OUTPUT}
