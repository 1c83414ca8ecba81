"""How many messages may be between two nodes of a graph: at the bound the node before hands out no more jobs.

A message has its place from the moment at which its request is handed to a worker of the node before, until the node
behind has answered. Where the graph forks, a request takes its places on all edges up to the join at once: so a join
never waits for one branch while the other branch has filled its edge. Every place that is waited for belongs to a
request that is further on, and the last node waits for none, so that requests always go on.

Each route has edges of its own. Beside messages an edge counts the bytes of large values that wait on it, once they are
known: an edge on which too many wait is full as well. The value that makes it so is there already.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msx_frontend.job import Job

Before = Mapping[str, Sequence[str]]
"""The nodes before each node. Each node comes after those before it."""


class Bound(NamedTuple):
    """How many messages may be on an edge, and how many bytes of large values."""

    messages: int
    size: int = 1 << 62


class Edge:
    """The way between two nodes. `wake` is called when a place is free again that somebody has been refused.

    `source`: the place of the node before. `size`: the bytes of large values on it.
    """

    __slots__ = ("_wake", "bound", "size", "source", "taken", "waited_for")

    def __init__(self, bound: Bound, source: int, wake: Callable[[], None]) -> None:
        self.bound, self.source = bound, source
        self.taken = self.size = 0
        self.waited_for = False
        self._wake = wake

    @property
    def full(self) -> bool:
        return self.taken >= self.bound.messages or self.size >= self.bound.size

    def release(self, size: int = 0) -> None:
        """A message has left it, with so many bytes that were counted."""
        self.taken -= 1
        self.size -= size
        if self.waited_for:
            self.waited_for = False
            self._wake()


class Enters(Protocol):
    """The sink of a job that a bounded node is given."""

    def enter(self) -> bool:
        """Take the places that the job needs before a worker gets it; False if one is missing. Idempotent."""


def enter(jobs: Sequence[Job]) -> int:
    """How many of these jobs, from the first on, may be handed to a worker now. They have their places then."""
    for at, job in enumerate(jobs):
        sink: Enters = job.sink  # type: ignore[assignment]  # the dispatchers of stages get no other jobs
        if not sink.enter():
            return at
    return len(jobs)


def take(edges: Sequence[Edge]) -> bool:
    """A place on each of them, or on none."""
    for edge in edges:
        if edge.full:
            edge.waited_for = True
            return False
    for edge in edges:
        edge.taken += 1
    return True


def entered_at(before: Before) -> dict[str, list[tuple[str, str]]]:
    """Find the edges on which the requests of each node take places: the one that leads on; at a fork all up to the
    join; between a fork and its join none. The graph has one start and one end."""
    after = {name: [one for one, row in before.items() if name in row] for name in before}
    joins = dict(_joins(after))
    found: dict[str, list[tuple[str, str]]] = {}
    inside: set[str] = set()
    for name in before:
        if name in inside:
            found[name] = []
            continue
        own = _between(name, joins.get(name, ""), after)
        inside |= own - {name}
        found[name] = [(one, following) for one in before if one in own for following in after[one]]
    return found


def _joins(after: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The first node on every way from each node to the end."""
    passed: dict[str, list[str]] = {}
    for name in reversed(list(after)):
        ways = [passed[one] for one in after[name]]
        common = [one for one in ways[0] if all(one in way for way in ways)] if ways else []
        passed[name] = [name, *common]
        if common:
            yield name, common[0]


def _between(start: str, join: str, after: Mapping[str, Sequence[str]]) -> set[str]:
    """The nodes on the ways from `start` to `join`, without the latter."""
    found, todo = {start}, [start]
    while todo:
        new = {one for one in after[todo.pop()] if one != join} - found
        found |= new
        todo += new
    return found
