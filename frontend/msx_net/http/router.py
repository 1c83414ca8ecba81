"""The way from a path to the route that serves it, and to the route's family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from msx_net.http.family import Family, Route
from msx_net.http.head import Head
from msx_net.http.route_tree import RouteNode, ServedRoute
from msx_net.keys import Kind
from msx_net.model_names import ModelNames

PREFLIGHT = "OPTIONS"


class Match(NamedTuple):
    """Meaning of a method and path. `family` makes the errors, also if nothing serves the request (`route` is None):
    404, or 405 where there are methods `allowed`.
    """

    family: Family
    route: Route | None = None
    names: dict[str, str] = {}  # a NamedTuple's default, which nothing changes
    kinds: tuple[Kind, ...] = ()
    """The kinds of keys of which one opens the route; none where it is public."""
    allowed: tuple[str, ...] = ()

    def form(self, head: Head) -> Family:
        """Family that makes the errors of a request with this head."""
        expected = None if self.route is None or self.route.form is None else self.route.form(head)
        return expected or self.family

    @property
    def is_management(self) -> bool:
        """The listener of its family, or the only kind of key that opens it, is that of management."""
        return self.family.listener == "management" or self.kinds == ("management",)


Further = Callable[[str, str], Match | None]
"""Given a method and a path."""


class Router:
    """The routes of one listener. More literal templates win over less literal ones, earlier families over later."""

    def __init__(
        self,
        families: Iterable[Family],
        default: Family,
        unknown: tuple[Kind, ...] = (),
        further: Further | None = None,
        names: ModelNames | None = None,
    ) -> None:
        """`default` makes the errors of unknown paths; `unknown` are the kinds of keys that may ask for these.

        `further` finds routes that come and go, for paths that no family has. `names`: an alias of a model may have
        encoded slashes. Raises ValueError for a template that is not a path.
        """
        self.families = tuple(families)
        self._further, self.names = further, names or ModelNames()
        self._root, self.default, self._unknown = RouteNode(), default, unknown
        self._owners: dict[str, Family] = {}
        for family in self.families:
            for segment in family.owns:
                self._owners.setdefault(segment, family)
            for route in family.routes:
                self._add(family, route)

    def find(self, method: str, path: str, raw_path: bytes = b"") -> Match:
        """`path` is decoded, without a slash at its end unless it is "/"; `raw_path` is as the client sent it. Raises
        what a route's `when` raises."""
        segments = self._with_aliases(raw_path) if has_encoded_slash(raw_path) else path[1:].split("/")
        owner = self._owners.get(segments[0])
        lends = owner is not None and segments[0] in owner.lends
        if lends and self._further is not None and (lent := self._further(method, path)) is not None:
            return lent
        missing: Match | None = None
        for node, values in self._nodes(segments, owned=owner is not None):
            served = [one for one in node.served if one.has(values)]
            if (found := _of_method(served, method)) is not None:
                return Match(found.family, found.route, dict(zip(found.names, values, strict=True)), found.kinds)
            if served and missing is None:
                missing = Match(served[0].family, kinds=served[0].kinds, allowed=_allowed(served))
                if method == "HEAD" and _of_method(served, "GET") is not None:
                    return missing  # a HEAD means no other route than its GET
        if missing is None and owner is None and self._further and (later := self._further(method, path)) is not None:
            return later
        return missing or (Match(owner) if owner else Match(self.default, kinds=self._unknown))

    def _with_aliases(self, raw_path: bytes) -> list[str]:
        """An encoded slash divides a path as any other does (TorchServe's rule), but for those of an alias."""
        found: list[str] = []
        for raw in raw_path.decode("ascii")[1:].split("/"):
            segment = unquote(raw)
            is_alias = segment.partition(":")[0] in self.names.aliases
            found += [segment] if is_alias else segment.split("/")
        while found and not found[-1]:
            found.pop()
        return found or [""]

    def taken_by(self, path: str) -> tuple[str, ...] | None:
        """None for a path that models may have; () where a family has it, or all paths of its beginning; else the
        capabilities of the models that answer it."""
        segments = path[1:].split("/")
        owner = self._owners.get(segments[0])
        served = [one for node, _ in self._nodes(segments, owned=owner is not None) for one in node.served]
        if served:
            offered = {one.route.offered_by for one in served}
            return offered.pop() if len(offered) == 1 else ()
        return None if owner is None or segments[0] in owner.lends else ()

    def places(self) -> Iterator[Sequence[ServedRoute]]:
        """See `RouteNode.places`."""
        return self._root.places()

    def first_segments(self) -> set[str]:
        """First segments that the families use or own."""
        return {*self._root.literals, *self._owners} - {""}

    def _nodes(self, segments: list[str], *, owned: bool) -> Iterator[tuple[RouteNode, tuple[str, ...]]]:
        """All nodes that match, the most literal one first."""
        if not owned:
            return self._root.walk(segments)
        node = self._root.literals.get(segments[0])
        return iter(()) if node is None else node.walk(segments, 1)

    def _add(self, family: Family, route: Route) -> None:
        if not route.path.startswith("/"):
            raise ValueError(f"The path {route.path!r} of {family.name} does not begin with a slash.")
        node, names = self._root.place(route.path)
        kinds: tuple[Kind, ...] = () if route.key is None else (route.key,)
        for number, other in enumerate(node.served):
            if other.route.method == route.method and other.route.when is None:
                if other.route.answer == route.answer:  # the same on another listener: either key opens it
                    node.served[number] = other._replace(kinds=tuple(dict.fromkeys((*other.kinds, *kinds))))
                return
        node.served.append(ServedRoute(family, route, names, kinds))


def has_encoded_slash(raw_path: bytes) -> bool:
    return b"%2F" in raw_path or b"%2f" in raw_path


def _of_method(served: list[ServedRoute], method: str) -> ServedRoute | None:
    """HEAD is GET without a body. A model, or a workflow, does not run for an answer that is thrown away."""
    for one in served:
        if one.route.method == method:
            return one
    for one in served:
        if method == "HEAD":
            if one.route.method == "GET" and not one.runs_job:
                return one
        elif one.route.any_method:
            return one
    return None


def _allowed(served: list[ServedRoute]) -> tuple[str, ...]:
    """The methods for the header Allow."""
    methods: list[str] = []
    for one in served:
        own = [one.route.method, *(("GET", "POST", "PUT") if one.route.any_method else ())]
        methods += [*own, "HEAD"] if one.route.method == "GET" and not one.runs_job else own
    return (*dict.fromkeys(method for method in methods if method != PREFLIGHT), PREFLIGHT)
