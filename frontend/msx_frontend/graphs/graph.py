"""The graph that a request runs through: its nodes, and what is said of all of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msx_core.methods import PACKED_METHOD
from msx_core.packed import PACKED
from msx_frontend.declared_jobs import DeclaredJobs
from msx_frontend.graphs.edges import Bound, Edge, entered_at
from msx_frontend.job import PREDICT, Job

Headers = list[tuple[str, str]]


class NodeTarget(Protocol):
    """The model that a node is. `submit` and `pass_on` raise ServiceError."""

    def submit(self, job: Job) -> None:
        """A request of a client."""

    def pass_on(self, job: Job) -> None:
        """Take the answer of the node before: a place was kept for it, and no queue may refuse it."""

    def refused(self, status: int) -> None:
        """Counts a request that one of these has refused."""

    def wake(self) -> None:
        """A place on an edge is free again."""


class Attempts(NamedTuple):
    """A node is tried `most` times in all, each for `limit` ms; 0 is without a limit of its own."""

    most: int = 1
    limit: int = 0


class Node:
    """`names`: the fields in which it gets the values of those before it, by their places."""

    __slots__ = ("after", "attempts", "enters", "leads_to", "leaves", "model", "name", "names", "place", "target")

    def __init__(self, name: str, model: str, place: int, target: NodeTarget, attempts: Attempts) -> None:
        self.name, self.model, self.place, self.target, self.attempts = name, model, place, target, attempts
        self.after: tuple[Node, ...] = ()
        self.leads_to: Node | None = None
        """The only node behind it, if it is the only one before that."""
        self.names: dict[int, str] = {}
        self.enters: tuple[Edge, ...] = ()
        """Where its requests take places before a worker gets them."""
        self.leaves: tuple[Edge, ...] = ()
        """Where they give their places back when it has answered."""


class Form(NamedTuple):
    """How a graph's answers and errors look. `limit`: the most bytes of a node's answer; 0 is any number.

    `kind`: that of the jobs of nodes which others follow.
    """

    header: str
    kind: str
    value_type: str | None
    """The content type of what a node is given of those before it."""
    leaf_type: tuple[tuple[str, str], ...] = ()
    """The header of a leaf's answer without a type."""
    limit: int = 0
    names_ids: bool = False
    """The ids of jobs have the names of nodes behind the request's id."""
    shares: bool = False
    """Large values may stand in shared memory, and the leaf's stream goes to the client as it comes. Otherwise a reply
    is heard to its end."""
    own_types: bool = False
    """Errors have types of MSX, because TorchServe has no such graphs."""


WORKFLOW = Form("x-workflow-node", PREDICT, None, (("content-type", "application/json"),), names_ids=True)
"""TorchServe sends JSON's type with every answer. MSX sends it unless the handler sets another one."""
STAGES = Form("x-stage", PACKED_METHOD, PACKED, shares=True, own_types=True)


class Graph:
    """`before` has the nodes before each node, in an order in which each comes after those. It has one start."""

    def __init__(
        self,
        before: Mapping[str, Sequence[str]],
        targets: Mapping[str, tuple[str, NodeTarget]],
        form: Form,
        *,
        attempts: Mapping[str, Attempts] | None = None,
        leaves: Sequence[str] = (),
        bounds: Mapping[str, Bound] | None = None,
        declared: DeclaredJobs | None = None,
    ) -> None:
        """`targets` by name: the model's name, and the model. `leaves` in the order of their answers, by default that
        of `before`. `bounds`: of each edge that leads to a node; without it any number. `declared`: what its
        service says of bodies and replies.
        """
        self.form, self.declared = form, declared
        known = attempts or {}
        nodes = {
            name: Node(name, *_placed(place, targets[name]), known.get(name, Attempts()))
            for place, name in enumerate(before)
        }
        for name, node in nodes.items():
            node.after = tuple(other for one, other in nodes.items() if name in before[one])
            one = len(before[name]) == 1
            node.names = {nodes[earlier].place: "body" if one else earlier for earlier in before[name]}
        for node in nodes.values():
            if len(node.after) == 1 and len(node.after[0].names) == 1:
                node.leads_to = node.after[0]
        self.nodes = tuple(nodes.values())
        self.start = self.nodes[0]
        ends = [name for name in nodes if not nodes[name].after]
        self.leaves = tuple(nodes[name] for name in leaves or ends)
        if bounds is not None:
            self._bound(before, nodes, bounds)

    def _bound(self, before: Mapping[str, Sequence[str]], nodes: dict[str, Node], bounds: Mapping[str, Bound]) -> None:
        leaving: dict[str, list[Edge]] = {name: [] for name in nodes}
        for name, pairs in entered_at(before).items():
            wake = nodes[name].target.wake
            edges = [(behind, Edge(bounds[behind], nodes[one].place, wake)) for one, behind in pairs]
            nodes[name].enters = tuple(edge for _, edge in edges)
            for following, edge in edges:
                leaving[following].append(edge)
        for name, found in leaving.items():
            nodes[name].leaves = tuple(found)


def _placed(place: int, target: tuple[str, NodeTarget]) -> tuple[str, int, NodeTarget]:
    return target[0], place, target[1]


__all__ = ["STAGES", "WORKFLOW", "Attempts", "Form", "Graph", "Headers", "Node", "NodeTarget"]
