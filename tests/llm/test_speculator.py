"""When drafts are worth their places: pure decisions, from costs and from what was accepted."""

from __future__ import annotations

from typing import cast

import pytest

from msx_core.config import SpeculativeOptions
from msx_llm.sampling import Sampler
from msx_llm.sequence import TokenSequence
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.speculator import Speculator
from msx_llm.step import Decode, Mixed, Prefill, TokenChunk

PATTERN = [3, 1, 4, 1, 5, 9, 2, 6]
BUCKETS = (1, 4, 8, 16)
DEAR, CHEAP = (1.0, 5.0, 9.0, 17.0), (1.0, 1.2, 1.5, 2.0)


def speculator(costs: tuple[float, ...], tokens: int = 7) -> Speculator:
    made = Speculator(SpeculativeOptions(tokens=tokens), BUCKETS)
    for rows, seconds in zip(BUCKETS, costs, strict=True):
        made.took(Decode(tuple(range(rows)), (0,) * rows, (0,) * rows), seconds)
    return made


def text(of: Speculator, tokens: list[int] | None = None, limit: int = 1000) -> TokenSequence:
    made = TokenSequence(tokens or PATTERN * 3, (0, 0, 0), limit, cast(Sampler, None))
    made.drafts = of.drafts_of_text()
    return made


@pytest.mark.parametrize(
    ("tokens", "draft"),
    [
        ([1, 2, 3, 4, 5, 1, 2, 3], [4, 5, 1, 2, 3, 4]),  # on and on, as it began
        ([1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 3], [9, 1, 2, 3, 9, 1]),  # as it was last
        ([7, 7, 7, 7], [7] * 6),
        ([1, 2, 3, 4, 5], []),
        ([1, 2], []),
    ],
)
def test_a_text_goes_on_as_it_did(tokens: list[int], draft: list[int]) -> None:
    index = NgramIndex(3)
    assert index.draft(tokens, 6) == draft
    assert index.draft(tokens, 2) == draft[:2]
    pieces = NgramIndex(3)
    for stop in range(len(tokens)):
        pieces.read(tokens, stop)
    assert pieces.draft(tokens, 6) == draft


def test_nothing_is_drafted_before_a_step_was_measured() -> None:
    one = Speculator(SpeculativeOptions(), BUCKETS)
    assert one.drafts([text(one)], 15) == []
    one.took(Prefill(0, 0, (1, 2)), 1.0)
    one.took(Mixed((TokenChunk(0, 0, (1, 2)),)), 1.0)
    assert one.drafts([text(one)], 15) == []
    one.took(Decode((0,), (0,), (0,)), 1.0)
    assert one.drafts([text(one)], 15) == [PATTERN[:7]]


def test_the_bucket_is_the_one_that_pays_most() -> None:
    one = speculator((1.0, 1.2, 3.0, 9.0))
    assert one.drafts([text(one)], 15) == [PATTERN[:3]]
    assert one.drafts([text(one)], 2) == [PATTERN[:2]]
    assert one.drafts([text(one)], 0) == []


def test_no_more_is_drafted_than_there_are_states_for() -> None:
    """A text's next step may go on behind any of its drafted tokens: until then their states are kept."""
    one = speculator((1.0, 1.0, 1.0, 1.0))
    one._states = 10
    first, second, third = texts = [text(one) for _ in range(3)]
    for slot, it in enumerate(texts):
        it.slot = slot
    for it, count in ((first, 7), (second, 3), (third, 0), (first, 7)):
        drafts = one.drafts([it], 15)
        assert sum(map(len, drafts)) == count
        one.began([it], drafts)
    one.began([first], [])
    assert one.drafts([third], 15) == [PATTERN[:7]]


def test_states_of_texts_that_have_ended_are_free_as_far_as_the_cache_gives_them_up_first() -> None:
    one = speculator((1.0, 1.0, 1.0, 1.0))
    one._states = 10
    first, second, third = texts = [text(one) for _ in range(3)]
    for slot, it in enumerate(texts):
        it.slot = slot
    one.began([first], [PATTERN[:7]])
    one.began([second], [PATTERN[:3]])
    second.finished = True
    assert one.drafts([third], 15) == [], "those of the first text are older, and needed"
    one.began([first], [PATTERN[:7]])
    assert one.drafts([third], 15) == [PATTERN[:3]]
    first.slot = None  # it was preempted
    assert one.drafts([third], 15) == [PATTERN[:7]]


def test_a_small_model_drafts_no_more_than_there_are_states_for() -> None:
    one = speculator((1.0, 1.0, 1.0, 1.0))
    one._states = 10
    first, second = text(one), text(one)
    first.slot, second.slot = 0, 1
    one.began([first], [PATTERN[:7]])
    assert one.wanted([second], 15) == [3]


def test_the_likelier_drafts_come_first() -> None:
    one = speculator((1.0, 1.2, 9.0, 17.0))
    sure, unsure = text(one), text(one)
    one.note(sure, 7, 7)
    assert [len(draft) for draft in one.drafts([unsure, sure], 14)] == [0, 2]


def after_texts_that_accepted_nothing() -> Speculator:
    one = speculator((1.0, 1.3, 1.4, 1.6))
    for _ in range(400):
        one.note(text(one), 7, 0)
    return one


def test_a_text_that_would_have_accepted_is_drafted_for_soon() -> None:
    """Whatever others did: it is seen whether its next token was the proposed one."""
    one = after_texts_that_accepted_nothing()
    copy = text(one)
    steps = 0
    while not one.drafts([copy], 15):
        copy.tokens.append(PATTERN[steps % len(PATTERN)])
        steps += 1
    assert steps == 2


def test_a_text_that_would_not_have_accepted_is_left_alone() -> None:
    one = speculator((1.0, 3.0, 4.0, 5.0))
    other = text(one)
    before = other.drafts and other.drafts.rate
    assert one.drafts([other], 15) == []
    other.tokens += [7, *PATTERN]
    assert one.drafts([other], 15) == []
    assert other.drafts
    assert before == pytest.approx(other.drafts.rate / 0.8)


def test_what_was_drafted_is_observed_once() -> None:
    one = speculator(CHEAP)
    copy = text(one)
    assert one.drafts([copy], 15) == [PATTERN[:3]]
    one.note(copy, 3, 3)
    assert copy.drafts
    rate = copy.drafts.rate
    copy.tokens += PATTERN[:4]
    one.drafts([copy], 15)
    assert copy.drafts.rate == rate


def test_no_token_beyond_a_texts_limit() -> None:
    one = speculator(CHEAP)
    assert one.drafts([text(one, limit=len(PATTERN * 3) + 3)], 15) == [PATTERN[:2]]
    assert one.drafts([text(one, limit=len(PATTERN * 3) + 1)], 15) == []


def test_where_it_does_not_pay_it_is_tried_seldom() -> None:
    """A step of four places costs five of one: 1.9 tokens are expected of it at first."""
    one = speculator(DEAR)
    tried = [bool(one.drafts([text(one)], 15)) for _ in range(1000)]
    assert 0 < sum(tried) * 5 < 30


def test_a_text_that_accepts_nothing_goes_without_and_one_that_accepts_goes_on() -> None:
    one = speculator(CHEAP)
    stubborn, willing = text(one), text(one)
    for _ in range(40):
        for sequence, accepts in ((stubborn, False), (willing, True)):
            for draft in one.drafts([sequence], 15):
                one.note(sequence, len(draft), len(draft) * accepts)
    assert one.drafts([stubborn], 15) == []
    assert one.drafts([willing], 15) == [PATTERN[:7]]
    assert 0 < one.accepted < one.drafted


def test_a_new_text_expects_what_others_accepted() -> None:
    one = speculator(CHEAP)
    for _ in range(200):
        one.note(text(one), 7, 0)
    assert one.drafts([text(one)], 15) == []
    for _ in range(200):
        one.note(text(one), 7, 7)
    assert one.drafts([text(one)], 15) != []


def test_an_outlier_does_not_count_whole() -> None:
    one = speculator(CHEAP)
    one.took(Decode((0, 1, 2, 3), (0,) * 4, (0,) * 4), 1000.0)
    assert one.drafts([text(one)], 3) == [PATTERN[:3]]


@pytest.mark.parametrize(("buckets", "said"), [((1,), ["slotBuckets: [1]"]), ((1, 2), [])])
def test_no_place_for_drafts_is_warned_of(
    buckets: tuple[int, ...], said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    Speculator(SpeculativeOptions(), buckets)
    assert [text for text in said if text in caplog.text] == said
    assert bool(caplog.records) == bool(said)
