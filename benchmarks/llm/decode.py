"""Tokens a second of several texts at once, each with one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.llm.names import CTRANSLATE2, HUGGING_FACE, MSX, OF_HUGGING_FACE, RUNNER, TORCH
from benchmarks.llm.peer import Peer
from benchmarks.llm.setting import CONTEXTS, Setting
from benchmarks.llm.streams import stream_all
from benchmarks.llm.trace import throughput, together
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Table, Target

START = 32
"""Tokens that each text has before."""
CAPTION = "Tokens of all texts together in a second, by how many texts are written at once; longer is better."
TARGET, TARGET_SLOTS = 0.7, (8, 16)

Turn = Callable[[int, int], float]
"""Slots and steps to tokens a second."""


@dataclass
class Decode:
    """Figures by contestant and slots, one a round."""

    rates: dict[str, dict[int, list[float]]] = field(default_factory=dict)

    def of(self, peer: str, name: str, slots: int) -> tuple[float, float, float] | None:
        """The ratio, round by round: median, lowest and highest; None without the peer."""
        if peer not in self.rates:
            return None
        return paired_ratio(self.rates[name][slots], self.rates[peer][slots])

    def served(self, slots: int) -> float:
        return median(self.rates[MSX][slots])

    def table(self) -> Table:
        slots = list(next(iter(self.rates.values())))
        rows = [self._row(name, count) for count in slots for name in self.rates]
        columns = ("texts", "", "tokens/s", "lowest – highest", "ms a step", "of torch", "of Hugging Face")
        return Table("Decoding, output tokens a second", columns, rows)

    def plot(self) -> Bars:
        slots = next(iter(self.rates.values()))
        panels = {f"{n} at once": {name: rates[n] for name, rates in self.rates.items()} for n in slots}
        return Bars("llm", "Decoding", "output tokens/s", panels, CAPTION)

    def targets(self) -> list[Target]:
        """Compares loop with loop, and then the whole server, with the frontend and the client on the same cores."""
        loops = [self._target(TORCH, name, slots, TARGET) for slots in TARGET_SLOTS for name in (RUNNER, MSX)]
        whole = [self._target(HUGGING_FACE, MSX, slots, OF_HUGGING_FACE) for slots in self.rates[MSX]]
        return [target for target in (*loops, *whole) if target is not None]

    def _target(self, peer: str, name: str, slots: int, share: float) -> Target | None:
        if slots not in self.rates.get(name, {}) or (ratio := self.of(peer, name, slots)) is None:
            return None
        what = f"{slots} text{'s' if slots > 1 else ''}, {name}: tokens/s of {peer}"
        return Target(what, f"{ratio[0]:.2f}", f"≥ {share:g}", ratio[0] >= share)

    def _row(self, name: str, slots: int) -> Sequence[str]:
        rates = self.rates[name][slots]
        ratios = [_shown(self.of(peer, name, slots)) for peer in (TORCH, HUGGING_FACE)]
        middle = median(rates)
        return (str(slots), name, figure(middle), spread(rates), figure(slots / middle * 1000), *ratios)


def _shown(ratio: tuple[float, float, float] | None) -> str:
    return "–" if ratio is None else f"{ratio[0]:.2f} ({ratio[1]:.2f} – {ratio[2]:.2f})"


def measure(all_: Setting, slots: Sequence[int], rounds: int, steps: int, report: Callable[[str], None]) -> Decode:
    turns = _turns(all_)
    found = Decode({name: {count: [] for count in slots} for name in turns})
    for count in slots:
        for turn in turns.values():
            turn(count, 4)  # what is allocated at the first time
    for number in range(rounds):
        for count in slots:
            for name in _rotated([*turns], number):
                found.rates[name][count].append(turns[name](count, steps))
        report(f"decoding, round {number + 1} of {rounds}")
    return found


def _turns(all_: Setting) -> dict[str, Turn]:
    turns: dict[str, Turn] = {MSX: partial(_served, all_), RUNNER: partial(_looped, all_.bare, "loop")}
    if all_.torch is not None:
        turns[TORCH] = partial(_looped, all_.torch, "loop", context=CONTEXTS[0])
        turns[HUGGING_FACE] = partial(_looped, all_.torch, "generate")
    if all_.ctranslate2 is not None:
        turns[CTRANSLATE2] = partial(_looped, all_.ctranslate2, "generate")
    return turns


def _served(all_: Setting, slots: int, steps: int) -> float:
    """While all run: prompts come one after the other, so that the first is ahead of the last."""
    output = min(steps + 2 * slots, CONTEXTS[0] - START)
    traces = stream_all(all_.server.address, all_.clients.alike(slots, START, output))
    return throughput(traces, *together(traces))


def _looped(one: Peer, what: str, slots: int, steps: int, **options: int) -> float:
    instants: list[float] = one.ask(what, slots=slots, start=START, steps=steps, **options)["instants"]
    return slots * (len(instants) - 1) / (instants[-1] - instants[0])


def _rotated(names: list[str], by: int) -> list[str]:
    """Rotates, so that each is the first after a pause in turn."""
    start = by % len(names)
    return names[start:] + names[:start]
