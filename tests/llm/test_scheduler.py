from __future__ import annotations

from itertools import pairwise
from typing import cast

from msx_llm.paged import PagedPool
from msx_llm.sampling import Sampler
from msx_llm.scheduler import Scheduler
from msx_llm.sequence import TokenSequence
from msx_llm.slots import SlotPool
from msx_llm.step import UNREAD, CopyPositions, Decode, Mixed, Prefill, TokenChunk
from msx_llm.step_plan import StepPlan
from msx_sdk.generation import Owner
from tests.llm.fakes import limits

NO_SAMPLER = cast(Sampler, None)
TOKEN = 7


class Stage:
    """A scheduler whose steps are done at once, and whose texts all grow by the same token."""

    def __init__(
        self,
        slots: int = 4,
        context: int = 64,
        prefill: int = 16,
        total: int | None = None,
        lanes: int = 1,
        mixes: bool = False,
        groups: bool = False,
    ) -> None:
        shape = limits(slots=slots, context=context, prefill=prefill, total=total)
        self.pool = SlotPool(shape.slots, shape.batch_total, shape.block)
        self.scheduler = Scheduler(self.pool, shape, lanes, mixes=mixes, groups=groups)
        self.log: list[StepPlan] = []
        self._numbers = 0

    def add(
        self, tokens: list[int], priority: int = 0, limit: int = 64, texts: int = 1, owner: Owner | None = None
    ) -> list[TokenSequence]:
        self._numbers += 1
        sequences = [
            TokenSequence(list(tokens), (priority, self._numbers, index), limit, NO_SAMPLER, asked_by=owner)
            for index in range(texts)
        ]
        for sequence in sequences:
            self.scheduler.add(sequence)
        return sequences

    def step(self) -> StepPlan:
        plan = self.scheduler.next()
        assert plan is not None
        self.finish(plan)
        return plan

    def finish(self, plan: StepPlan) -> None:
        self.log.append(plan)
        self.scheduler.done(plan)
        for sequence in plan.sequences:
            if not sequence.finished and not sequence.left:
                sequence.tokens.append(TOKEN)
                if len(sequence.tokens) >= sequence.limit:
                    self.scheduler.end(sequence)

    def until(self, sequence: TokenSequence) -> list[StepPlan]:
        start = len(self.log)
        while not sequence.finished:
            self.step()
        return self.log[start:]


def kinds(plans: list[StepPlan]) -> str:
    return "".join(type(plan.step).__name__[0] for plan in plans)


def test_a_long_prompt_never_stalls_running_texts() -> None:
    stage = Stage(context=256)
    runs = [stage.add([place])[0] for place in range(3)]
    for _ in range(6):
        stage.step()
    before = [sequence.made for sequence in runs]
    (long,) = stage.add(list(range(100, 228)), limit=129)
    assert kinds(stage.until(long)) == "PD" * 7 + "P"
    assert [sequence.made for sequence in runs] == [made + 7 for made in before]


def test_a_long_prompt_alone_is_not_interrupted() -> None:
    stage = Stage(context=256)
    (long,) = stage.add(list(range(100)), limit=101)
    plans = stage.until(long)
    assert [len(plan.step.tokens) for plan in plans if isinstance(plan.step, Prefill)] == [16] * 6 + [4]
    assert [plan.step.start for plan in plans if isinstance(plan.step, Prefill)] == list(range(0, 100, 16))


def test_short_prompts_share_the_budget_of_a_chunk() -> None:
    stage = Stage(slots=8)
    stage.add([1])
    stage.step()
    shorts = [stage.add([place, 99], limit=3)[0] for place in range(10, 16)]
    assert kinds(stage.until(shorts[-1])) == "PPPPDPP"  # each is padded to 4, of 16


def test_while_others_decode_a_chunk_costs_no_more_than_their_step() -> None:
    stage = Stage(context=256)
    stage.add([1])
    stage.step()
    stage.scheduler.pace.note(Decode((0,), (1,), (0,)), 0.010)
    stage.scheduler.pace.note(Prefill(0, 0, tuple(range(16))), 0.032)
    (long,) = stage.add(list(range(100, 120)), limit=21)
    plans = stage.until(long)
    assert kinds(plans) == "PDPDPDPDP"
    assert {len(plan.step.tokens) for plan in plans if isinstance(plan.step, Prefill)} == {4}


def measured(stage: Stage, decode: float, prefill: float) -> None:
    """Let a decoding step and a prompt's 16 tokens have taken so many seconds."""
    stage.scheduler.pace.note(Decode((0,), (1,), (0,)), decode)
    stage.scheduler.pace.note(Prefill(0, 0, tuple(range(16))), prefill)


def test_while_more_prompts_wait_than_texts_decode_they_get_more_time() -> None:
    stage = Stage(slots=4, context=256)
    stage.add([1])
    stage.step()
    measured(stage, 0.010, 0.010)
    prompts = [stage.add(list(range(place, place + 32)), limit=33)[0] for place in (100, 200, 300)]
    assert kinds(stage.until(prompts[-1])) == "PPDPPDPDP"  # three wait, then two, then one


def test_prompts_of_one_chunk_cost_as_much_as_several_steps_whatever_decodes() -> None:
    stage = Stage(slots=4, context=256)
    stage.add([1])
    stage.step()
    measured(stage, 0.010, 0.080)
    prompts = [stage.add(list(range(place, place + 16)), limit=17)[0] for place in (100, 200, 300)]
    assert kinds(stage.until(prompts[-1])) == "PPDP"  # sixteen steps take as long as two


def test_a_long_prompt_of_which_one_chunk_is_not_cached_is_a_short_one() -> None:
    stage = Stage(slots=4, context=256)
    (first,) = stage.add(list(range(100, 164)), limit=65)
    stage.until(first)
    stage.add([1])
    stage.step()
    measured(stage, 0.010, 0.032)
    (long,) = stage.add(list(range(100, 180)), limit=81)
    assert kinds(stage.until(long)).lstrip("C") == "P"


def test_prompts_of_a_worse_priority_do_not_get_more_time() -> None:
    stage = Stage(slots=4, context=256)
    stage.add([1], priority=-1)
    stage.step()
    measured(stage, 0.010, 0.010)
    prompts = [stage.add(list(range(place, place + 16)), limit=17)[0] for place in (100, 200, 300)]
    assert kinds(stage.until(prompts[-1])) == "PDPDP"


def test_texts_below_the_usual_priority_do_not_slow_a_prompt_down() -> None:
    stage = Stage(context=256)
    stage.add([1], priority=1)
    stage.step()
    stage.scheduler.pace.note(Decode((0,), (1,), (0,)), 0.010)
    stage.scheduler.pace.note(Prefill(0, 0, tuple(range(16))), 0.032)
    (long,) = stage.add(list(range(100, 120)), limit=21)
    assert kinds(stage.until(long)) == "PP"
    (low,) = stage.add(list(range(200, 220)), priority=1, limit=21)
    assert kinds(stage.until(low)) == "PDPDPDPDP"


def test_a_prompt_goes_on_when_the_text_it_waits_for_had_to_leave() -> None:
    """A lane that got no step from the scheduler does not ask again."""
    stage = Stage(prefill=4, total=64)  # 16 blocks
    (runs,) = stage.add([1] * 20, limit=60)
    for _ in range(6):
        stage.step()
    (urgent,) = stage.add(list(range(100, 136)), priority=-1, limit=37)
    assert "PD" in kinds(stage.until(urgent))
    assert stage.scheduler.preempted == 1
    stage.until(runs)


def test_a_prompt_of_one_token_needs_no_prefill() -> None:
    stage = Stage()
    stage.add([1])
    stage.add([2])
    assert stage.step().step == Decode((0, 1), (1, 2), (0, 0))


def test_first_come_first_served_and_none_overtakes() -> None:
    stage = Stage(slots=1)
    order = [stage.add([place, 9], limit=4)[0] for place in range(4)]
    for earlier, later in pairwise(order):
        stage.until(earlier)
        assert later.made == 0
        stage.step()
        assert later.slot is not None


def test_a_big_one_at_the_head_is_not_passed_by_small_ones() -> None:
    stage = Stage(total=64)
    (runs,) = stage.add(list(range(30)), limit=33)
    stage.step()
    stage.step()
    (big,), (small,) = stage.add(list(range(100, 140)), limit=42), stage.add([5, 6], limit=4)
    stage.until(runs)
    assert small.made == 0
    stage.step()
    assert big.slot is not None


def test_each_running_text_has_a_block_left_when_another_comes() -> None:
    stage = Stage(total=64)  # 16 blocks
    (runs,) = stage.add([1], limit=3)
    stage.step()
    (tight,) = stage.add([2] * 60, limit=61)
    stage.step()
    assert tight.slot is None
    stage.until(runs)
    stage.step()
    assert tight.slot is not None


def test_priorities_come_first() -> None:
    stage = Stage(slots=1)
    stage.add([1, 2], limit=5)
    stage.step()
    late, urgent = stage.add([3, 4], priority=0, limit=4)[0], stage.add([5, 6], priority=-1, limit=4)[0]
    stage.until(urgent)
    assert late.made == 0


def test_an_urgent_prompt_passes_a_long_one() -> None:
    stage = Stage(context=256)
    (long,) = stage.add(list(range(100, 200)), limit=102)
    stage.step()
    (urgent,) = stage.add([5, 6, 7], priority=-1, limit=5)
    assert len(stage.until(urgent)) < 5
    assert long.made == 0


def test_texts_of_a_request_wait_for_their_prompt() -> None:
    stage = Stage()
    first, second, third = stage.add(list(range(20)), texts=3)
    stage.step()
    assert second.slot is None
    stage.step()
    plans = [stage.step() for _ in range(3)]
    assert [type(plan.step) for plan in plans] == [CopyPositions, CopyPositions, Decode]
    assert plans[0].step == CopyPositions(0, 1, 19)
    assert plans[2].sequences == [first, second, third]


def test_texts_of_a_request_wait_for_their_prompt_in_every_lane() -> None:
    stage = Stage(lanes=2)
    stage.add(list(range(20)), texts=2)
    assert stage.scheduler.next() is not None
    assert stage.scheduler.next() is None
    (other,) = stage.add(list(range(50, 70)), priority=-1)
    plan = stage.scheduler.next()
    assert plan is not None
    assert plan.sequences == [other]


def test_the_last_in_order_makes_room_and_comes_back() -> None:
    stage = Stage(slots=3, total=64)
    first, second, third = (stage.add([place] * 10, limit=40)[0] for place in range(3))
    while not stage.scheduler.preempted:
        stage.step()
    assert [*stage.scheduler.waiting] == [third]
    made = third.made
    (later,) = stage.add([9, 9], limit=4)
    stage.until(first)
    assert third.made >= made
    stage.until(third)
    assert second.finished
    assert not later.made or third.finished
    stage.until(later)
    assert (stage.pool.used, stage.scheduler.running, [*stage.scheduler.waiting]) == (0, [], [])


def test_what_made_room_finds_its_tokens_in_the_cache() -> None:
    stage = Stage(slots=2, total=64)
    first, second = (stage.add([place] * 20, limit=50)[0] for place in range(2))
    while second.slot is not None or not second.made:
        stage.step()
    length = len(second.tokens)
    stage.until(first)
    stage.step()
    assert second.computed == length
    assert second.cached == 0


def test_the_whole_budget_is_enough_for_one_text_of_any_length() -> None:
    stage = Stage(slots=2, total=64)
    first, second = (stage.add([place] * 30, limit=64)[0] for place in range(2))
    stage.until(second)
    assert first.finished
    assert len(second.tokens) == 64


def test_no_more_tokens_than_the_budget_of_all() -> None:
    stage = Stage(slots=4, total=64)
    lasts = [stage.add([place] * 12, limit=50)[0] for place in range(4)]
    while not all(sequence.finished for sequence in lasts):
        stage.step()
        assert stage.pool.used <= 16
        assert sum(len(sequence.tokens) for sequence in stage.scheduler.running) <= 64 + 4


def test_lanes_share_those_who_decode() -> None:
    stage = Stage(lanes=2)
    all_of_them = [stage.add([place])[0] for place in range(4)]
    one, two = stage.scheduler.next(), stage.scheduler.next()
    assert one is not None
    assert two is not None
    assert stage.scheduler.next() is None
    assert one.sequences + two.sequences == all_of_them
    stage.finish(one)
    again = stage.scheduler.next()
    assert again is not None
    assert again.sequences == one.sequences


def test_a_prompt_and_running_texts_are_in_flight_together() -> None:
    stage = Stage(lanes=2)
    stage.add([1])
    stage.step()
    stage.add(list(range(30)))
    kinds = {type(plan.step) for plan in (stage.scheduler.next(), stage.scheduler.next()) if plan is not None}
    assert kinds == {Prefill, Decode}


def test_ending_in_flight_frees_at_once_and_harms_no_other() -> None:
    stage = Stage(slots=1)
    (leaves,) = stage.add(list(range(10)))
    plan = stage.scheduler.next()
    assert plan is not None
    stage.scheduler.end(leaves)
    stage.scheduler.end(leaves)
    assert stage.pool.used == 0
    (comes,) = stage.add(list(range(10)))
    second = stage.scheduler.next()
    assert second is not None
    assert second.sequences == [comes]
    stage.scheduler.done(plan)
    assert comes.computed == 0


def test_a_failed_step_frees_its_slots_and_says_how_to_try() -> None:
    stage = Stage()
    stage.add([1])
    stage.add([2])
    plan = stage.scheduler.next()
    assert plan is not None
    assert stage.scheduler.failed(plan) == [Decode((1,), (0,), (0,))]
    assert (stage.pool.used, stage.scheduler.running) == (0, [])
    assert [sequence.finished for sequence in plan.sequences] == [True, True]


def test_a_failed_step_leaves_a_text_alone_that_had_ended_before() -> None:
    stage = Stage()
    (leaves,) = stage.add([1])
    stage.add([2])
    plan = stage.scheduler.next()
    assert plan is not None
    stage.scheduler.end(leaves)
    stage.scheduler.failed(plan)
    assert (stage.pool.used, stage.scheduler.running) == (0, [])


def test_paged_blocks_are_assigned_before_they_are_written() -> None:
    shape = limits(slots=2)
    scheduler = Scheduler(PagedPool(2, 17, 4), shape)
    sequence = TokenSequence([1, 2, 3], (0, 0, 0), 12, NO_SAMPLER)
    scheduler.add(sequence)
    seen = []
    for _ in range(9):
        plan = scheduler.next()
        assert plan is not None
        seen.append(plan)
        scheduler.done(plan)
        if not sequence.left:
            sequence.tokens.append(TOKEN)
    assert kinds(seen) == "APDADDDDA"


def counts(plan: StepPlan) -> list[int]:
    assert isinstance(plan.step, Mixed)
    return [len(chunk.tokens) for chunk in plan.step.chunks]


def test_prompts_and_single_tokens_mix_in_one_step() -> None:
    stage = Stage(mixes=True)
    stage.add([1, 2, 3])
    stage.add(list(range(40)))
    first = stage.step()
    assert first.step == Mixed((TokenChunk(0, 0, (1, 2, 3)), TokenChunk(1, 0, tuple(range(13)))))
    second = stage.step()
    assert second.step == Mixed((TokenChunk(0, 3, (TOKEN,)), TokenChunk(1, 13, tuple(range(13, 29)))))
    assert counts(stage.step()) == [1, 11]
    assert counts(stage.step()) == [1, 1]


def test_mixed_prompts_are_admitted_until_a_step_is_full() -> None:
    stage = Stage(mixes=True)
    for _ in range(4):
        stage.add(list(range(100, 110)))
    assert counts(stage.step()) == [10, 6]
    assert [sequence.slot is None for sequence in stage.scheduler.waiting] == [True, True]


def test_a_scored_prompt_does_not_mix() -> None:
    stage = Stage(mixes=True)
    (scored,) = stage.add([1, 2, 3])
    scored.scored = True
    stage.add([4, 5])
    assert stage.step().step == Prefill(0, 0, (1, 2, 3), all_logits=True)
    assert counts(stage.step()) == [1, 2]


def test_a_mixed_prompt_may_take_as_long_as_a_decoding_step() -> None:
    stage = Stage(mixes=True)
    pace = stage.scheduler.pace
    pace.note(Mixed((TokenChunk(0, 0, tuple(range(16))),)), 0.016)
    pace.note(Mixed((TokenChunk(0, 16, (1,)),)), 0.004)
    stage.add([1])
    stage.step()
    stage.add(list(range(40)))
    assert counts(stage.step()) == [1, 4]


def test_a_mixed_prompt_leaves_prompts_below_the_usual_priority_behind() -> None:
    stage = Stage(mixes=True)
    pace = stage.scheduler.pace
    pace.note(Mixed((TokenChunk(0, 0, tuple(range(16))),)), 0.016)
    pace.note(Mixed((TokenChunk(0, 16, (1,)),)), 0.004)
    stage.add([1], priority=1)
    stage.step()
    stage.add(list(range(10)), priority=1)
    assert counts(stage.step()) == [1, 4]
    stage.add(list(range(50, 60)))
    assert counts(stage.step()) == [1, 10]


def test_a_text_that_is_preempted_with_an_unread_token_waits_for_it() -> None:
    """Its tokens are what its keys are looked up by."""
    scheduler = Scheduler(PagedPool(2, 4, 4), limits(slots=2), mixes=True)
    first, last = (TokenSequence([1, 2, 3], (0, number, 0), 12, NO_SAMPLER) for number in (0, 1))
    for sequence in (first, last):
        scheduler.add(sequence)
    while not scheduler.preempted:
        plan = scheduler.next()
        assert plan is not None
        for sequence in plan.sequences:
            if sequence.tokens[-1] == UNREAD:  # it is read when the next step has started
                sequence.tokens[-1] = TOKEN
        scheduler.foresee(plan)
    assert last.tokens[-1] == UNREAD
    scheduler.end(first)
    assert scheduler.next() is None
    last.tokens[-1] = TOKEN
    plan = scheduler.next()
    assert plan is not None
    assert plan.sequences == [last]
