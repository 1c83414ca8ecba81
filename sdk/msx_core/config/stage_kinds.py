"""`bodies:` and `replies:` of a model with stages: said by a route, by its first and last stage, or for all of them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from msx_core.config.keys import ModelKeys
from msx_core.config.stage_routes import StageRoute
from msx_core.values import ConfigError

KINDS = ("bodies", "replies")


def declare(routes: Mapping[str, StageRoute], configs: Mapping[str, ModelKeys]) -> dict[str, StageRoute]:
    """The routes with what their first and last stages say where they say nothing themselves. Raises ConfigError where
    some routes have it and others do not: a stage that they share could not tell."""
    found = {name: _declared(route, configs) for name, route in routes.items()}
    for key in KINDS:
        silent = [name for name, route in found.items() if getattr(route, key) is None]
        if silent and len(silent) < len(found):
            where = "the first stage" if key == "bodies" else "the last stage"
            raise ConfigError(
                f"routes: {silent[0]} has no {key}, and others have: give {key} to the route or to {where} of each, "
                "or once above the stages"
            )
    return found


def kinds_of(stage: str, routes: Mapping[str, StageRoute]) -> dict[str, Any]:
    """Keys that the handler of a stage is told: those of a route that begins, or ends, at it, else of any route."""
    found = {}
    for key, end in zip(KINDS, ("first", "last"), strict=True):
        own = [route for route in routes.values() if getattr(route, end) == stage]
        if (kind := getattr(next(iter([*own, *routes.values()])), key)) is not None:
            found[key] = kind
    return found


def _declared(route: StageRoute, configs: Mapping[str, ModelKeys]) -> StageRoute:
    bodies = route.bodies or configs[route.first].bodies
    return msgspec.structs.replace(route, bodies=bodies, replies=route.replies or configs[route.last].replies)
