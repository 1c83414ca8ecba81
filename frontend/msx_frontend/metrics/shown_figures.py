"""Figures of a part of the server, read at each scrape."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

F = TypeVar("F")


class ShownFigures(Collector, Generic[F]):
    """Metrics without samples where the server has no such part."""

    def __init__(self) -> None:
        self._figures: Callable[[], F | None] = _none
        self._seen: list[Metric] = []
        self.look()

    @abstractmethod
    def families(self, figures: F | None) -> list[Metric]:
        """Make the metrics of these figures; None where there are none."""

    def show(self, figures: Callable[[], F]) -> None:
        """Show these figures from now on."""
        self._figures = figures

    def figures(self) -> F | None:
        """None where the server has no such part."""
        return self._figures()

    def counts(self, of: Callable[[F], Mapping[str, int]]) -> Mapping[str, int]:
        """Counts of these figures; none where the server has no such part."""
        return {} if (figures := self._figures()) is None else of(figures)

    def look(self) -> None:
        """Read the figures on the loop's thread, which owns them."""
        self._seen = self.families(self._figures())

    def describe(self) -> Iterable[Metric]:
        return self._seen

    def collect(self) -> Iterable[Metric]:
        return self._seen


def _none() -> None:
    return None
