"""Bodies that grow in one member, and the processor time that they cost the server and its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import psutil

from tests.adversary.asks import Ask
from tests.adversary.bodies import Schema
from tests.adversary.rig import Attack
from tests.adversary.wires import answer_to

SIZE = 150_000
"""Bytes of the member, about, and of the smaller of two bodies."""
NOTICEABLE = 0.2
"""Seconds of processor time: what takes less at the larger size is not measured again."""
MOST = 2.5
"""Times the processor time that a body may take which is twice as large."""
TRIES = 3

Path = tuple[str, ...]
SHAPES: Mapping[str, Callable[[int], Any]] = {
    "a text": lambda size: "x" * size,
    "words": lambda size: "word " * (size // 5),
    "texts": lambda size: [f"{number:06}" for number in range(size // 9)],
    "one long text": lambda size: ["x" * size],
    "numbers": lambda size: [number % 1000 for number in range(size // 4)],
    "members": lambda size: {str(number): number % 100 for number in range(size // 12)},
    "objects": lambda size: [{"role": "user", "content": "x"}] * (size // 31),
}


class Growing(NamedTuple):
    attack: Attack
    member: Path
    shape: str

    @property
    def name(self) -> str:
        return f"{self.attack.name}: {'.'.join(self.member)} as {self.shape}"

    def sized(self, size: int) -> Ask:
        body = msgspec.json.decode(self.attack.ask.body)
        place = body
        for name in self.member[:-1]:
            place = place.setdefault(name, {})
        place[self.member[-1]] = SHAPES[self.shape](size)
        return self.attack.ask._replace(body=msgspec.json.encode(body))

    async def cost(self, size: int, processes: list[psutil.Process]) -> float:
        """Seconds of processor time of all of them until the reply is there."""
        before = _spent(processes)
        async with self.attack.connected() as wire:
            await answer_to(wire, self.sized(size), self.attack.key)
        return _spent(processes) - before

    async def fault(self, processes: list[psutil.Process]) -> str:
        """The least of several tries counts: other processes disturb one or another."""
        if await self.cost(2 * SIZE, processes) < NOTICEABLE:
            return ""
        small, large = [min([await self.cost(size, processes) for _ in range(TRIES)]) for size in (SIZE, 2 * SIZE)]
        if large < NOTICEABLE or large <= MOST * small:
            return ""
        return f"{self.name}: {small:.2f} s of processor time, and {large:.2f} s for twice the size"


def _spent(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def growing(attack: Attack) -> Iterator[Growing]:
    """Every member of the body's schema in every shape."""
    schema = attack.ask.schema or {}
    for member in members(schema, schema.get("$defs", {})):
        yield from (Growing(attack, member, shape) for shape in SHAPES)


def members(schema: Schema, known: Mapping[str, Schema], outer: Path = ()) -> Iterator[Path]:
    """Members, also of objects in objects, two levels deep."""
    for name, value in schema.get("properties", {}).items():
        yield (*outer, name)
        for one in (value, *value.get("anyOf", ())):
            if (place := one.get("$ref", "").removeprefix("#/$defs/")) and not outer:
                yield from members(known[place], known, (name,))
