"""Leader and followers together: whatever happens to the requests, every rank makes the same calls and steps."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msx_core.resolve import resolve_object
from msx_core.results import Last
from msx_protocol import Chunk
from msx_sdk import method
from msx_sdk.context import Context
from tests.backend.parallel.ranks import Ranks, ranks_of, steps_of

Seen = dict[int, list[Any]]


def recording(seen: Seen, ranks: list[Ranks]) -> Any:
    """A handler whose answers and cancels follow from the requests' bodies: `s<n>` streams, `c<n>` is cancelled at
    step n, `l<n>` ends at step n, `b` is bad."""

    def handle(rank: int, data: list[dict[str, Any]], context: Context) -> Any:
        wishes = [context.get_request_id(idx) for idx in range(len(data))]
        bodies = [bodies_of[wish] for wish in wishes]
        note(rank, "call", wishes, context, len(data))
        if "b" in bodies:
            raise ValueError("bad")
        if any(body[0] in "scl" for body in bodies):
            return stream(rank, bodies, context)
        return bodies

    def stream(rank: int, bodies: list[str], context: Context) -> Generator[list[Any], None, None]:
        try:
            for step in range(1, max(int(body[1:] or 0) for body in bodies) + 3):
                if rank == 0:  # a cancel comes to rank 0 only, at any time
                    ranks[0].jobs.cancel(
                        [number_of[context.get_request_id(i)] for i, b in enumerate(bodies) if b == f"c{step}"]
                    )
                note(rank, step, None, context, len(bodies))
                yield [Last("end") if body == f"l{step}" else f"{step}" for body in bodies]
        finally:
            note(rank, "closed", None, context, len(bodies))

    def note(rank: int, what: Any, wishes: Any, context: Context, size: int) -> None:
        seen.setdefault(rank, []).append((what, wishes, [context.cancelled(idx) for idx in range(size)]))

    bodies_of: dict[str, str] = {}
    number_of: dict[str, int] = {}
    return handle, bodies_of, number_of


BODY = st.one_of(
    st.sampled_from(["p", "p", "b"]), st.builds(lambda kind, n: f"{kind}{n}", st.sampled_from("scl"), st.integers(1, 4))
)
BATCH = st.tuples(st.lists(BODY, min_size=1, max_size=4), st.sets(st.integers(0, 3), max_size=2))


@settings(max_examples=150)
@given(st.integers(2, 4), st.lists(BATCH, min_size=1, max_size=6), st.booleans(), st.integers(1, 4))
def test_all_ranks_see_the_same(number: int, batches: list[Any], isolate: bool, input_ranks: int) -> None:
    seen: Seen = {}
    holder: list[Ranks] = []
    handle, bodies_of, number_of = recording(seen, holder)
    with ranks_of(number, handle, input_ranks=input_ranks, isolate=isolate) as ranks:
        holder.append(ranks)
        ranks.start()
        newest = 0
        for bodies, cancelled in batches:
            for body in bodies:
                newest += 1
                bodies_of[f"id-{newest}"], number_of[f"id-{newest}"] = body, newest
            ranks.run(*(body.encode() for body in bodies), cancelled=tuple(n for n in cancelled if n < len(bodies)))
        ranks.finish()
        for rank in range(1, number):
            assert seen[rank] == seen[0]
        first, *others = [[(one.call, one.requests, one.steps, one.error) for one in told] for told in ranks.reports()]
        assert all(other == first for other in others)
        assert len(first) == len([what for what, _, _ in seen[0] if what == "call"])


def test_inputs_go_to_the_first_stage_only() -> None:
    seen: dict[int, Any] = {}

    def handle(rank: int, data: list[dict[str, Any]], context: Context) -> list[Any]:
        seen[rank] = [dict(row) for row in data], [context.get_request_header(idx, "x-n") for idx in range(len(data))]
        return [b""] * len(data)

    with ranks_of(4, handle, input_ranks=2) as ranks:
        ranks.start()
        ranks.run(b"one", b"two")
        ranks.finish()
    full = [{"body": bytearray(b"one")}, {"body": bytearray(b"two")}]
    assert seen == {0: (full, ["0", "1"]), 1: (full, ["0", "1"]), 2: ([{}, {}], ["0", "1"]), 3: ([{}, {}], ["0", "1"])}


def test_large_inputs() -> None:
    sizes: dict[int, list[int]] = {}

    def handle(rank: int, data: list[dict[str, Any]], context: Context) -> list[Any]:
        sizes.setdefault(rank, []).extend(len(row["body"]) for row in data)
        return [b""] * len(data)

    with ranks_of(3, handle) as ranks:
        ranks.start()
        for _ in range(3):
            ranks.run(b"a" * 10_000_000, b"b")
        ranks.finish()
    assert sizes == dict.fromkeys(range(3), [10_000_000, 1] * 3)


def test_only_rank_0_answers() -> None:
    with ranks_of(2, lambda rank, data, context: steps_of(3)(data)) as ranks:
        ranks.start()
        ranks.run(b"x")
        ranks.finish()
        chunks = [[body for message, body in rank.told() if isinstance(message, Chunk)] for rank in ranks.ranks]
    assert chunks == [[b"0", b"1", b"2", b""], []]


def test_what_other_ranks_answer_is_not_even_encoded() -> None:
    class Unspeakable:
        def __str__(self) -> str:
            raise AssertionError("encoded")

    with ranks_of(2, lambda rank, data, context: [b"fine" if rank == 0 else Unspeakable()]) as ranks:
        ranks.start()
        ranks.run(b"x")
        ranks.finish()
        assert [[one.error for one in told] for told in ranks.reports()] == [[""], [""]]


# -- ranks that differ --


def reports_of(handle: Any) -> list[Any]:
    """(steps, error) of each rank's one call."""
    with ranks_of(2, handle) as ranks:
        ranks.start()
        ranks.run(b"x")
        ranks.finish()
        return [(told[0].steps, told[0].error) for told in ranks.reports()]


def test_streams_of_unequal_length_differ_in_steps() -> None:
    assert reports_of(lambda rank, data, context: steps_of(3 + rank)(data)) == [(4, ""), (5, "")]
    assert reports_of(lambda rank, data, context: steps_of(3 - rank)(data)) == [(4, ""), (3, "")]
    assert reports_of(lambda rank, data, context: steps_of(3)(data)) == [(4, ""), (4, "")]


def test_a_stream_on_one_rank_only() -> None:
    answer = [b""]
    assert reports_of(lambda rank, data, context: steps_of(1)(data) if rank else answer) == [(0, ""), (1, "")]
    assert reports_of(lambda rank, data, context: answer if rank else steps_of(1)(data)) == [(2, ""), (0, "")]


def test_an_error_on_one_rank_only() -> None:
    def failing(bad: int) -> Any:
        def handle(rank: int, data: Any, context: Context) -> Generator[list[bytes], None, None]:
            yield [b"1"]
            if rank == bad:
                raise ValueError(rank)
            yield [b"2"]

        return handle

    assert reports_of(failing(0)) == [(2, "ValueError: 0"), (3, "")]
    assert reports_of(failing(1)) == [(3, ""), (2, "ValueError: 1")]


class Methods:
    """Writes down which rank was asked for what."""

    def __init__(self, rank: int, seen: list[tuple[int, str, int]]) -> None:
        self.rank, self.seen = rank, seen

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        self.seen.append((self.rank, "handle", len(data)))
        return data

    @method("top")
    def best(self, data: list[Any], context: Context) -> list[Any]:
        self.seen.append((self.rank, context.method, len(data)))
        return [b"best"] * len(data)


def test_every_rank_calls_the_same_method() -> None:
    seen: list[tuple[int, str, int]] = []
    with ranks_of(3, lambda rank, data, context: data, input_ranks=1) as ranks:
        for number, rank in enumerate(ranks.ranks):
            rank.handler = resolve_object(Methods(number, seen))
        ranks.runner = ranks.ranks[0].runner(ranks.leader)
        ranks.start()
        ranks.run(b"a", b"b", operation="method:top")
        ranks.run(b"a", operation="method:other")  # is answered before the others hear of it
        ranks.run(b"a", operation="packed:")
        ranks.finish()
    assert sorted(seen) == [(rank, call, size) for rank in range(3) for call, size in (("handle", 1), ("top", 2))]
