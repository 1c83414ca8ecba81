"""The graph of a model's stages, and the routes through it."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from msx_core.config.sections import BodyKind, ReplyKind
from msx_core.values import ConfigError, convert, near_miss, show

MOST_ROUTES = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=@-]+)+")
"""A path without `{`, `%` and a slash at the end; a `:` would name a method."""

_KINDS: dict[str, Any] = {"bodies": BodyKind | None, "replies": ReplyKind | None}
_KEYS = {"first", "last", *_KINDS}

Before = Mapping[str, tuple[str, ...]]
"""The stages whose results each stage is given."""


class StageRoute(msgspec.Struct, frozen=True, kw_only=True):
    """`before` has the stages of the route alone, each after those that are before it. `bodies` and `replies` as the
    route says them; where it does not, its first and last stage may."""

    first: str
    last: str
    before: dict[str, tuple[str, ...]]
    bodies: BodyKind | None = None
    replies: ReplyKind | None = None


def check_graph(before: Before) -> None:
    """Raises ConfigError for an unknown stage or a cycle."""
    for name, row in before.items():
        for one in row:
            _check_known(f"stages.{name}.from", one, before)
    try:
        list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise ConfigError(f"stages: {' -> '.join(reversed(error.args[1]))} is a cycle (from)") from None


def find_routes(before: Before, written: Any) -> dict[str, StageRoute]:
    """Routes by name or path. Without `routes:` one route, "", of the whole graph. Raises ConfigError."""
    if written is None:
        return {"": _route("routes", {}, before)}
    if not isinstance(written, Mapping) or not written or len(written) > MOST_ROUTES:
        raise ConfigError(
            f"routes: {show(written)} is not a mapping of 1 to {MOST_ROUTES} names or paths to first and last stages"
        )
    routes = {_key(key): _route(f"routes.{key}", row, before) for key, row in written.items()}
    if unused := [name for name in before if not any(name in route.before for route in routes.values())]:
        raise ConfigError(f"routes: no route has the stage {unused[0]}: add it to one, or remove the stage")
    return routes


def _key(key: Any) -> str:
    if isinstance(key, str) and (_NAME.fullmatch(key) or (_PATH.fullmatch(key) and len(key) <= 200)):
        return key
    raise ConfigError(
        f"routes: {show(key)} is neither a name (letters, digits, '_', '-') nor a path that begins with '/', such as "
        "/inference"
    )


def _route(where: str, row: Any, before: Before) -> StageRoute:
    given = {} if row is None else row
    if not isinstance(given, Mapping) or not given.keys() <= _KEYS:
        raise ConfigError(
            f"{where}: {show(row)} is not a mapping with the keys first and last, which name stages, bodies and replies"
        )
    first = _end(where, "first", given, [name for name, row in before.items() if not row], before)
    followed = {one for row in before.values() for one in row}
    last = _end(where, "last", given, [name for name in before if name not in followed], before)
    within = _reached(last, before) & _reached(first, _turned(before))
    if not within:
        raise ConfigError(f"{where}: no way leads from stage {first} to stage {last}")
    order = [name for name in TopologicalSorter(before).static_order() if name in within]
    own = {name: tuple(one for one in before[name] if one in within) for name in order}
    kinds = {key: convert(f"{where}.{key}", given.get(key), kind) for key, kind in _KINDS.items()}
    return StageRoute(first=first, last=last, before=own, **kinds)


def _end(where: str, key: str, given: Mapping[Any, Any], found: list[str], before: Before) -> str:
    """The stage that is given, else the only one there is."""
    if (name := given.get(key)) is not None:
        _check_known(f"{where}.{key}", name, before)
        return str(name)
    if len(found) == 1:
        return found[0]
    side, what = ("before", "starts") if key == "first" else ("after", "ends")
    raise ConfigError(
        f"stages: {', '.join(found)} have no stage {side} them, and a graph without routes: has one of these {what}: "
        f"join them by from, or give each route its {key} stage"
    )


def _check_known(where: str, name: Any, before: Before) -> None:
    if not isinstance(name, str) or name not in before:
        meant = near_miss(str(name), before)
        raise ConfigError(
            f"{where}: {show(name)} is not a stage ({', '.join(before)}){f'; did you mean {meant}?' if meant else ''}"
        )


def _turned(before: Before) -> dict[str, tuple[str, ...]]:
    return {name: tuple(one for one, row in before.items() if name in row) for name in before}


def _reached(start: str, edges: Before) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        new = set(edges[todo.pop()]) - found
        found |= new
        todo += new
    return found
