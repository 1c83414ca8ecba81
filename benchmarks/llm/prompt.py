"""How long one text alone waits for its first token."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks.llm.names import CTRANSLATE2, HUGGING_FACE, MSX, OF_HUGGING_FACE
from benchmarks.llm.peer import Peer
from benchmarks.llm.setting import Setting, config, serve
from benchmarks.llm.streams import stream_all
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Table, Target
from benchmarks.servers.msx import Server

PROMPT, CHUNK = 1024, 512
"""Tokens: of the prompt, and of its parts, which is the default of model-config.yaml."""

Turn = Callable[[], float]
"""Seconds until the first token."""


@dataclass
class FirstToken:
    """Seconds of each round by contestant."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def speed(self, name: str) -> tuple[float, float, float] | None:
        """Ratio to Hugging Face's speed, round by round: median, lowest and highest."""
        if HUGGING_FACE not in self.seconds:
            return None
        return paired_ratio(self.seconds[HUGGING_FACE], self.seconds[name])

    def table(self) -> Table:
        rows = [
            (name, figure(median(it) * 1000), spread([one * 1000 for one in it])) for name, it in self.seconds.items()
        ]
        return Table(f"A prompt of {PROMPT:,} tokens, first token", ("", "ms", "lowest – highest"), rows)

    def targets(self) -> list[Target]:
        if (ratio := self.speed(MSX)) is None:
            return []
        what = f"a prompt of {PROMPT:,} tokens, {MSX}: speed of {HUGGING_FACE} to the first token"
        return [Target(what, f"{ratio[0]:.2f}", f"≥ {OF_HUGGING_FACE:g}", ratio[0] >= OF_HUGGING_FACE)]


def measure(all_: Setting, rounds: int, report: Callable[[str], None]) -> FirstToken:
    """Measure by a server of its own: the other one has smaller parts, so that a prompt disturbs texts less."""
    with serve(all_.folder, json.dumps(config(CHUNK) | {"slotBuckets": [1]})) as server:
        turns = _turns(all_, server)
        for turn in turns.values():
            turn()  # what is allocated at the first time
        found = FirstToken({name: [] for name in turns})
        for number in range(rounds):
            for name, turn in turns.items():
                found.seconds[name].append(turn())
            report(f"a prompt of {PROMPT:,} tokens, round {number + 1} of {rounds}")
    return found


def _turns(all_: Setting, server: Server) -> dict[str, Turn]:
    turns: dict[str, Turn] = {MSX: partial(_served, all_, server)}
    if all_.torch is not None:
        turns[HUGGING_FACE] = partial(_generated, all_.torch)
    if all_.ctranslate2 is not None:
        turns[CTRANSLATE2] = partial(_generated, all_.ctranslate2)
    return turns


def _served(all_: Setting, server: Server) -> float:
    [trace] = stream_all(server.address, all_.clients.alike(1, PROMPT, 1))
    return trace.first


def _generated(one: Peer) -> float:
    answer = one.ask("generate", slots=1, start=PROMPT, steps=1)
    first: float = answer["instants"][0] - answer["began"]
    return first
