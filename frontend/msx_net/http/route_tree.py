"""The paths of routes as a tree of segments: a more literal template is found before a less literal one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msx_net.http.family import Family, JobRoute, Route
from msx_net.keys import Kind


class ServedRoute(NamedTuple):
    """A route of a listener. `kinds` are the kinds of keys of which one opens it; none where it is public."""

    family: Family
    route: Route
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @property
    def runs_job(self) -> bool:
        return isinstance(self.route.answer, JobRoute)

    def has(self, values: Sequence[str]) -> bool:
        """Whether it exists, for a path with these values of its names. Raises what `when` and `whose` raise."""
        route = self.route
        if route.when is not None and not route.when():
            return False
        return route.whose is None or route.whose(dict(zip(self.names, values, strict=True)))


class RouteNode:
    """A place in the tree of segments."""

    __slots__ = ("beginnings", "literals", "name", "pairs", "rest", "served")

    def __init__(self) -> None:
        self.literals: dict[str, RouteNode] = {}
        self.beginnings: dict[str, RouteNode] = {}
        """Children for segments that begin with a name, by the text behind the name."""
        self.pairs: dict[str, RouteNode] = {}
        """Children for segments of two names, by the text between them."""
        self.name: RouteNode | None = None
        self.rest: RouteNode | None = None
        self.served: list[ServedRoute] = []

    def place(self, template: str) -> tuple[RouteNode, tuple[str, ...]]:
        """The place of a template, made where it is missing, and the names in it."""
        node, names = self, tuple[str, ...]()
        for segment in template[1:].split("/"):
            node, own = node._child(segment)
            names += own
        return node, names

    def walk(
        self, segments: Sequence[str], at: int = 0, values: tuple[str, ...] = ()
    ) -> Iterator[tuple[RouteNode, tuple[str, ...]]]:
        """All places that match the segments from `at` on, the most literal one first, with the values of their
        names."""
        if at == len(segments):
            yield self, values
            return
        segment = segments[at]
        if (literal := self.literals.get(segment)) is not None:
            yield from literal.walk(segments, at + 1, values)
        for behind, child in self.beginnings.items():
            if segment.endswith(behind) and len(segment) > len(behind):
                yield from child.walk(segments, at + 1, (*values, segment[: -len(behind)]))
        for between, child in self.pairs.items():
            first, found, second = segment.partition(between)
            if found and first and second:
                yield from child.walk(segments, at + 1, (*values, first, second))
        if self.name is not None and segment:
            yield from self.name.walk(segments, at + 1, (*values, segment))
        if self.rest is not None:
            yield self.rest, (*values, "/".join(segments[at:]))

    def places(self) -> Iterator[Sequence[ServedRoute]]:
        """The routes of each path; more literal paths come first."""
        if self.served:
            yield self.served
        below = [*self.literals.values(), *self.beginnings.values(), *self.pairs.values(), self.name, self.rest]
        for child in below:
            if child is not None:
                yield from child.places()

    def _child(self, segment: str) -> tuple[RouteNode, tuple[str, ...]]:
        """The node of a template's next segment, and the names in it."""
        if not segment.startswith("{"):
            return self.literals.setdefault(segment, RouteNode()), ()
        name, _, behind = segment[1:].partition("}")
        if name.endswith(":path"):
            self.rest = self.rest or RouteNode()
            return self.rest, (name.removesuffix(":path"),)
        if behind.endswith("}"):
            between, _, second = behind[:-1].partition("{")
            return self.pairs.setdefault(between, RouteNode()), (name, second)
        if behind:
            return self.beginnings.setdefault(behind, RouteNode()), (name,)
        self.name = self.name or RouteNode()
        return self.name, (name,)
