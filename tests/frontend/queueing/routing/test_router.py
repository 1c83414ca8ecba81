"""The worker that is chosen: by session, by what the prompt begins with, by load; and what is remembered of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.queueing.routing.memory import COMMON, Memory
from msx_frontend.queueing.routing.router import Wanted, WorkerRouter

AHEAD = 3


@dataclass(eq=False)
class Worker:
    name: str
    busy: int = 0


def workers(*busy: int) -> list[Worker]:
    return [Worker("abcdefgh"[place], count) for place, count in enumerate(busy)]


def chosen(router: WorkerRouter[Worker], of: list[Worker], *blocks: int, session: int | None = None) -> str:
    worker, reason = router.choose(Wanted(session, blocks), of)
    return f"{worker.name} by {reason}"


def test_the_same_beginning_goes_to_the_same_worker() -> None:
    router, both = WorkerRouter[Worker](AHEAD), workers(0, 0)
    assert chosen(router, both, 1, 2) == "a by load"
    assert chosen(router, both, 7, 8) == "b by load"
    for _ in range(3):
        assert chosen(router, both, 1, 2, 3) == "a by prefix"
        assert chosen(router, both, 7, 9) == "b by prefix"


def test_the_longest_beginning_decides() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(0, 0)
    router.choose(Wanted(None, (1, 2, 3)), [a])
    router.choose(Wanted(None, (1, 2)), [b])
    assert chosen(router, [a, b], 1, 2, 3, 4) == "a by prefix"


def test_what_all_have_is_divided_by_load() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(1, 0)
    for worker in (a, b):
        router.choose(Wanted(None, (1,)), [worker])
    assert chosen(router, [a, b], 1, 5) == "b by prefix"


def test_many_conversations_with_the_same_beginning_are_divided() -> None:
    """Although they come one after the other, and the first worker has the beginning."""
    router, both = WorkerRouter[Worker](AHEAD), workers(0, 0)
    at = {n: chosen(router, both, 1, 2, 10 + n)[0] for n in range(16)}
    assert sorted(at.values()).count("b") >= 16 // 2 - COMMON
    for n, worker in at.items():
        assert chosen(router, both, 1, 2, 10 + n, 30 + n) == f"{worker} by prefix"


def test_few_questions_about_the_same_text_go_to_the_worker_that_has_it() -> None:
    router, both = WorkerRouter[Worker](AHEAD), workers(0, 0)
    assert [chosen(router, both, 1, 2, 10 + n)[0] for n in range(COMMON)] == ["a"] * COMMON


def test_turns_that_fill_no_block_of_their_own_stay() -> None:
    router, both = WorkerRouter[Worker](AHEAD), workers(0, 0)
    assert {chosen(router, both, 1, 2)[0] for _ in range(3 * COMMON)} == {"a"}


def test_of_workers_alike_the_one_that_was_chosen_longest_ago_is_next() -> None:
    router, all_three = WorkerRouter[Worker](AHEAD), workers(0, 0, 0)
    assert [chosen(router, all_three, 10 + n)[0] for n in range(6)] == list("abcabc")


def test_a_worker_that_is_too_busy_is_passed_over() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(0, 0)
    router.choose(Wanted(5, (1, 2)), [a])
    a.busy = AHEAD
    assert chosen(router, [a, b], 1, 2, session=5) == "a by session"
    a.busy = AHEAD + 1
    assert chosen(router, [a, b], 1, 2, session=5) == "b by load"
    a.busy = 0
    assert chosen(router, [a, b], 3, session=5) == "b by session", "the session has moved"


def test_a_session_stays_whatever_its_requests_begin_with() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(0, 0)
    router.choose(Wanted(None, (1, 2)), [b])
    assert chosen(router, [a, b], 9, session=5) == "a by load"
    assert chosen(router, [a, b], 1, 2, session=5) == "a by session"


def test_a_session_whose_worker_has_no_room_goes_on_elsewhere() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(0, 0)
    router.choose(Wanted(5, (1,)), [a])
    assert chosen(router, [b], 1, session=5) == "b by load"


def test_nothing_is_left_of_a_worker_that_has_ended() -> None:
    router, (a, b) = WorkerRouter[Worker](AHEAD), workers(0, 0)
    router.choose(Wanted(5, (1, 2)), [a])
    router.forget(a)
    router.forget(a)
    a.busy = 1
    assert chosen(router, [a, b], 1, 2, session=5) == "b by load"


def test_sessions_are_bounded() -> None:
    router, both = WorkerRouter[Worker](AHEAD, most_sessions=2), workers(0, 0)
    for session in (1, 2, 1, 3):
        router.choose(Wanted(session, ()), both)
    assert chosen(router, both, session=1).endswith("by session")
    assert chosen(router, both, session=2).endswith("by load")


@given(
    busy=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    asked=st.lists(st.tuples(st.none() | st.integers(0, 3), st.lists(st.integers(0, 5), max_size=4)), max_size=40),
    ahead=st.integers(0, 5),
)
def test_the_imbalance_is_bounded(busy: list[int], asked: list[tuple[int | None, list[int]]], ahead: int) -> None:
    """Whatever comes, when none of it ends."""
    router, all_of_them = WorkerRouter[Worker](ahead), workers(*busy)
    for session, blocks in asked:
        least = min(worker.busy for worker in all_of_them)
        worker, _ = router.choose(Wanted(session, blocks), all_of_them)
        assert worker.busy <= least + ahead
        worker.busy += 1


@given(
    asked=st.lists(st.lists(st.integers(0, 60), unique=True, max_size=12), max_size=60),
    most=st.integers(1, 20),
)
def test_a_memory_is_bounded_and_keeps_beginnings(asked: list[list[int]], most: int) -> None:
    memory = Memory(most)
    for blocks in asked:
        memory.keep(blocks)
        assert len(memory) <= most
        assert memory.known(blocks) == min(len(blocks), most), "the first ones are forgotten last"


def test_what_was_asked_for_longest_ago_is_forgotten() -> None:
    memory = Memory(4)
    for blocks in ([1, 2], [3, 4], [1, 2], [5]):
        memory.keep(blocks)
    assert [memory.known(blocks) for blocks in ([1, 2], [3, 4], [5])] == [2, 1, 1]


@pytest.mark.parametrize("ahead", [0, 2])
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_conversation_stays_where_it_began_while_the_workers_are_idle(ahead: int, turns: list[int]) -> None:
    router, both = WorkerRouter[Worker](ahead), workers(0, 0)
    at: dict[int, str] = {}
    for conversation in turns:
        worker, _ = router.choose(Wanted(None, (conversation, 100 + conversation)), both)
        assert at.setdefault(conversation, worker.name) == worker.name
