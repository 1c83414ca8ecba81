"""Figures of the servers' turns, and what one has of the other in the same rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.engines.contestants import OURS, OWN, THEIRS
from benchmarks.engines.texts import Load, Text
from benchmarks.reports.figures import figure, median, median_interval, paired_ratio
from benchmarks.reports.table import Table, Target

COLUMNS = (
    "texts",
    "prompt",
    "server",
    "tokens/s",
    "of vLLM's, median",
    "95 % interval",
    "first token, ms",
    "of vLLM's, median",
    "95 % interval",
    "CPU µs/token",
)
LEAST_RATE, MOST_FIRST = 0.97, 1.1


@dataclass
class Turns:
    """A figure a round: tokens a second from the first request to the last token, seconds to the first token (median
    of the texts), microseconds of processor time a token around the engine."""

    rates: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    micros: list[float] = field(default_factory=list)

    def add(self, texts: Sequence[Text], processor: float) -> None:
        tokens = sum(text.tokens for text in texts)
        self.rates.append(tokens / sum_of_spans(texts))
        self.firsts.append(median([text.first - text.sent for text in texts]))
        self.micros.append(processor * 1e6 / tokens)


def sum_of_spans(texts: Sequence[Text]) -> float:
    """Seconds in which texts were asked for: those of turns that follow each other are added."""
    spent, end = 0.0, 0.0
    for text in sorted(texts):
        spent += max(text.last - max(text.sent, end), 0.0)
        end = max(end, text.last)
    return spent


Found = dict[Load, dict[str, Turns]]
"""Turns by load and server."""


def table(title: str, found: Found) -> Table:
    return Table(title, COLUMNS, [row for load, turns in found.items() for row in _rows(load, turns)])


def targets(title: str, found: Found) -> Iterator[Target]:
    for load, turns in found.items():
        ours, theirs = turns[OURS], turns[THEIRS]
        rate, first = paired_ratio(ours.rates, theirs.rates)[0], paired_ratio(ours.firsts, theirs.firsts)[0]
        yield Target(
            f"{title}, {load}: tokens/s of vLLM's server", f"{rate:.3f}", f"≥ {LEAST_RATE}", rate >= LEAST_RATE
        )
        yield Target(f"{title}, {load}: first token of it", f"{first:.3f}", f"≤ {MOST_FIRST}", first <= MOST_FIRST)


def _rows(load: Load, turns: dict[str, Turns]) -> Iterator[Sequence[str]]:
    theirs = turns[THEIRS]
    for name, own in turns.items():
        rates, firsts = _ratio(own.rates, theirs.rates), _ratio(own.firsts, theirs.firsts)
        ms = figure(median(own.firsts) * 1e3)
        cost = "–" if name == OWN else figure(median(own.micros))
        yield (str(load.texts), str(load.prompt), name, figure(median(own.rates)), *rates, ms, *firsts, cost)


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[str, str]:
    """Median of the rounds' ratios, and its interval."""
    if ours is theirs:
        return "1", ""
    middle, _, _ = paired_ratio(ours, theirs)
    low, high = median_interval([one / other for one, other in zip(ours, theirs, strict=True)])
    return f"{middle:.3f}", f"{low:.3f} – {high:.3f}"
