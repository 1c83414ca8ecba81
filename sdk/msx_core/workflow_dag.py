"""The graph of a workflow: which node's result goes to which nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter


class InvalidDag(ValueError):
    """A graph that cannot be run; the message begins with TorchServe's words and names the nodes."""


@dataclass(frozen=True)
class WorkflowDag:
    """`successors` and `predecessors` have every node; in `order` each node comes after its predecessors."""

    successors: dict[str, tuple[str, ...]]
    predecessors: dict[str, tuple[str, ...]]
    order: tuple[str, ...]
    written: dict[str, list[str]]
    """The graph as the spec has it, in its order."""

    @classmethod
    def of(cls, written: Mapping[str, Sequence[str]]) -> WorkflowDag:
        """Raises InvalidDag for a graph without nodes, with a cycle, or with several start nodes."""
        successors: dict[str, tuple[str, ...]] = {name: tuple(dict.fromkeys(written[name])) for name in written}
        for name in [following for row in written.values() for following in row]:
            successors.setdefault(name, ())
        predecessors: dict[str, list[str]] = {name: [] for name in successors}
        for name, row in successors.items():
            for following in row:
                predecessors[following].append(name)
        order = _sorted(predecessors)
        _check_start([name for name in successors if not predecessors[name]])
        frozen = {name: tuple(row) for name, row in predecessors.items()}
        return cls(successors, frozen, order, {name: list(row) for name, row in written.items()})

    @property
    def leaves(self) -> list[str]:
        """The nodes whose results are the workflow's result, in the spec's order."""
        return [name for name, row in self.successors.items() if not row]

    def __str__(self) -> str:
        """As TorchServe shows it: `{pre=[m1], m1=[post]}`."""
        return "{" + ", ".join(f"{name}=[{', '.join(row)}]" for name, row in self.written.items()) + "}"


def _sorted(predecessors: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    if not predecessors:
        raise InvalidDag("Not a valid DAG: it has no nodes; name at least one under dag")
    try:
        return tuple(TopologicalSorter(predecessors).static_order())
    except CycleError as error:
        raise InvalidDag(f"Not a valid DAG: {' -> '.join(reversed(error.args[1]))} is a cycle") from None


def _check_start(starts: list[str]) -> None:
    if len(starts) > 1:
        raise InvalidDag(f"DAG should have only one start node: it has {', '.join(starts)}, which no node leads to")
