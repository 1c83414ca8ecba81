"""The table of a lone request's time, from the marks of three processes."""

from __future__ import annotations

import click
import pytest

from benchmarks.handlers.marks import Marks, mark
from benchmarks.load.client import Address
from benchmarks.utilisation.lone import Asked, _turns, table
from benchmarks.utilisation.steps import CALL, STEPS, beyond_the_call, instants, micros

NAMES = [step.mark for step in STEPS[:-1]]


def marks_of(*begun: int) -> Marks:
    """Marks of requests that were sent at these instants, and reached a step each 1,000 ns."""
    return {name: [at + 1000 * number for at in begun] for number, name in enumerate(NAMES, start=1)}


def test_each_request_has_the_marks_between_its_begin_and_its_end() -> None:
    marks = marks_of(0, 100_000)
    end = 100_000 + 1000 * len(STEPS)
    assert instants(marks, 100_000, end) == [*range(100_000, end + 1, 1000)]


def test_a_request_without_one_of_the_marks_is_not_counted() -> None:
    marks = marks_of(0, 100_000)
    marks["routed"] = marks["routed"][:1]
    assert instants(marks, 100_000, 117_000) is None
    marks["routed"].append(200_000)
    assert instants(marks, 100_000, 117_000) is None


def test_a_write_ends_when_its_reader_goes_on_at_the_latest() -> None:
    marks = marks_of(0)
    for name, late in {"sent": "read", "replied": "back"}.items():
        marks[name] = [marks[late][0] + 700]
    marks["written"] = [99_000]
    found = instants(marks, 0, 17_000)
    assert found is not None
    names = ["send", *NAMES, "end"]
    at = dict(zip(names, found, strict=True))
    assert (at["sent"], at["replied"], at["written"]) == (at["read"], at["back"], at["end"])


def test_what_is_not_the_device_is_summed_up() -> None:
    requests = [[*range(0, 1000 * size * (len(STEPS) + 1), 1000 * size)] for size in (1, 2, 3)]
    assert micros(requests) == [2.0] * len(STEPS)
    assert beyond_the_call(requests[0]) == 1000 * (len(STEPS) - 1)
    made = table({"overlap": requests, "overlap off": requests[:1]}, "A lone request")
    assert made.columns == ("where", "step", "overlap", "overlap off")
    assert list(made.rows[-1][-2:]) == ["32.0", "16.0"]
    assert [step.mark for step in STEPS].count(CALL) == 1


def test_a_method_that_is_marked_does_what_it_did() -> None:
    class Greeter:
        def greet(self, name: str, *, loud: bool = False) -> str:
            return name.upper() if loud else name

    marks: Marks = {}
    mark(marks, Greeter, "greet", begin="begun", end="done")
    assert Greeter().greet("a", loud=True) == "A"
    assert [len(one) for one in marks.values()] == [1, 1]
    assert marks["begun"] <= marks["done"]


def test_servers_take_turns_until_each_has_answered_all() -> None:
    assert _turns(1200) == [500, 500, 200]
    assert _turns(500) == [500]


def test_requests_without_marks_are_told_where_they_are_many() -> None:
    asked = Asked(Address("127.0.0.1", 1), [(0, 17_000)] * 3, marks_of(0))
    assert len(asked.requests()) == 3
    asked.noted = marks_of(50_000)
    with pytest.raises(click.ClickException, match="3 of 3 requests lack a mark"):
        asked.requests()
