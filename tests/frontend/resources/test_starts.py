"""Who starts now, who is in line, and who waits for memory. The memory here is a number that the test sets."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

from msx_frontend.resources import starts
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.starts import Start, Starts
from tests.loops import run

MB = 10**6


class Machine:
    def __init__(self, limit: int = 8, free: int = 10**6 * MB) -> None:
        self.free, self.looks = free, 0
        self.starts = Starts(limit, self._available)
        self.lacks: dict[str, Shortage | None] = {}

    def _available(self) -> int:
        self.looks += 1
        return self.free

    def ask(self, name: str, sibling: int | None = None, taken: int = 0) -> Start:
        """`sibling`, `taken` in MB."""
        size = None if sibling is None else sibling * MB
        start = Start(name, lambda: size, lambda: taken * MB, lambda lack: self.lacks.__setitem__(name, lack))
        self.starts.ask(start)
        return start


async def turn_of_the_loop() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def began(*all_starts: Start) -> list[bool]:
    return [start.turn.is_set() for start in all_starts]


def test_so_many_at_once_in_the_order_of_asking() -> None:
    async def test() -> None:
        machine = Machine(limit=2)
        all_starts = [machine.ask(f"m{number}") for number in range(4)]
        await turn_of_the_loop()
        assert began(*all_starts) == [True, True, False, False]
        machine.starts.end(all_starts[1])
        await turn_of_the_loop()
        assert began(*all_starts) == [True, True, True, False]
        machine.starts.end(all_starts[2])
        machine.starts.end(all_starts[2])
        await turn_of_the_loop()
        assert began(*all_starts) == [True] * 4

    run(test())


def test_one_that_gives_up_leaves_the_line() -> None:
    async def test() -> None:
        machine = Machine(limit=1)
        first, second, third = (machine.ask(name) for name in "abc")
        await turn_of_the_loop()
        machine.starts.end(second)
        machine.starts.end(first)
        await turn_of_the_loop()
        assert began(second, third) == [False, True]

    run(test())


def test_the_first_of_a_model_is_not_compared() -> None:
    async def test() -> None:
        machine = Machine(free=0)
        start = machine.ask("m:1.0")
        await turn_of_the_loop()
        assert began(start) == [True]

    run(test())


def test_one_with_a_sibling_needs_a_fifth_more_than_that_takes() -> None:
    async def test() -> None:
        machine = Machine(free=119 * MB)
        short, small = machine.ask("m:1.0", sibling=100), machine.ask("small:1.0", sibling=50)
        await turn_of_the_loop()
        assert began(short, small) == [False, True], "others are not held up"
        assert machine.lacks["m:1.0"] == Shortage(
            "memory",
            "m:1.0 needs 120 MB of memory, 1.2 times what a worker of it takes, and 119 MB are available; "
            "it starts when there are: ask for fewer workers, or give the server more memory",
        )
        assert machine.lacks["small:1.0"] is None
        machine.starts.end(small)
        machine.free = 120 * MB
        await turn_of_the_loop()
        assert began(short) == [True]
        assert machine.lacks["m:1.0"] is None

    run(test())


def test_what_those_that_start_will_still_take_is_not_given_twice() -> None:
    async def test() -> None:
        machine = Machine(free=300 * MB)
        first, second, third = (machine.ask(name, sibling=100, taken=20) for name in "abc")
        await turn_of_the_loop()
        assert began(first, second, third) == [True, True, False]
        words = machine.lacks["c"]
        assert words is not None
        assert "and 60 MB are available, beside what those that start now will take; it starts" in words.reason
        machine.free = 120 * MB + 2 * 99 * MB
        machine.starts._serve()
        assert began(third) == [False]
        machine.free = 120 * MB + 2 * 100 * MB
        machine.starts._serve()
        assert began(third) == [True]

    run(test())


def test_the_memory_is_looked_at_again_while_a_start_waits_for_some() -> None:
    async def test() -> None:
        with patch.object(starts, "LOOK", 0.001):
            machine = Machine(free=0)
            start = machine.ask("m:1.0", sibling=1)
            while machine.looks < 3:
                await asyncio.sleep(0.001)
            machine.free = 2 * MB
            await start.turn.wait()
            looks = machine.looks
            machine.starts.end(start)
            await asyncio.sleep(0.01)
            assert machine.looks == looks

    run(test())


def test_many_that_ask_at_once_are_one_look() -> None:
    async def test() -> None:
        machine = Machine(limit=50, free=0)
        for number in range(100):
            machine.ask(f"m{number}", sibling=1)
        await turn_of_the_loop()
        assert machine.looks == 1
        assert len(machine.lacks) == 100

    run(test())
