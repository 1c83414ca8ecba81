"""A server that takes turns with others, under many connections and under one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import httpx

from benchmarks.cli.benchmark import progress
from benchmarks.contests.contest import Contestant, Load, rotated
from benchmarks.servers.msx import Server
from benchmarks.utilisation.figures import Record, Turn

WARM_UP = 1.0
"""Seconds under all connections before the first round."""


@dataclass(frozen=True)
class Plan:
    rounds: int
    connections: int
    seconds: float
    """Length of a turn under all connections."""
    lone: float
    """Length of a turn under one."""


@dataclass(frozen=True)
class Served:
    record: Record
    contestant: Contestant
    figures: Callable[[], Mapping[str, Any]]
    """Asks its worker for the calls since the last question, and for those of a loop (handlers/measured_calls.py)."""

    def play(self, load: Load, plan: Plan) -> None:
        """Take a turn. Raises click.ClickException when an answer was an error."""
        before = self.figures()
        busy = self.contestant.run(load, plan.connections, plan.seconds)
        after = self.figures()
        lone = self.contestant.run(load, 1, plan.lone)
        bare, alone = ([*before[one], *after[one]] for one in ("bare", "alone"))
        turn = Turn(busy.per_second, lone.p50 / 1e6, bare, alone, after["calls"])
        self.record.turns.append(turn)


def play(name: str, field: Sequence[Served], load: Load, plan: Plan) -> None:
    """Play all rounds of a setting; who is first changes."""
    for one in field:
        one.contestant.warm_up(load, plan.connections, WARM_UP)
    for number in range(plan.rounds):
        for one in rotated([*field], number):
            one.play(load, plan)
        progress(f"utilisation: {name}, round {number + 1} of {plan.rounds}")


def check_overlap(server: Server, model: str, *, wanted: bool) -> None:
    """Raises click.ClickException where its batches overlap and should not, or do not and should."""
    described: dict[str, Any] = httpx.get(f"{server.management}/models/{model}", timeout=60).json()[0]["overlap"]
    if described["enabled"] is not wanted:
        raise click.ClickException(f"{model} should {'' if wanted else 'not '}overlap, and describe says {described}.")
