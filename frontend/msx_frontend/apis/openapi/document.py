"""OpenAPI 3.1 of the routes that a listener serves."""

from collections.abc import Sequence

from msx_frontend import __version__
from msx_frontend.apis.openapi.operations import METHODS, operation, path_of
from msx_frontend.apis.openapi.schemas import Components, Schema
from msx_frontend.keys.key import KINDS
from msx_net.http.route_tree import ServedRoute
from msx_net.http.router import Router

OPENAPI = "3.1.0"
_TEXT = "MSX serves models of MindSpore, on Ascend NPUs and on CPUs."


def document(title: str, router: Router, *, secured: bool) -> Schema:
    """Routes without a summary are left out. `secured`: the listener asks for keys."""
    components = Components()
    paths: dict[str, Schema] = {}
    for place in router.places():
        if operations := _operations(place, components, secured=secured):
            paths[path_of(place[0].route.path)] = operations
    made: Schema = {
        "openapi": OPENAPI,
        "info": {"title": title, "description": _TEXT, "version": __version__},
        "paths": paths,
        "components": components.to_builtins(),
    }
    if secured:
        made["components"]["securitySchemes"] = {kind: _scheme(kind) for kind in KINDS}
    return made


def _operations(place: Sequence[ServedRoute], components: Components, *, secured: bool) -> Schema:
    """Operations of one path. Its names are those of its first route: OpenAPI has one form of a path."""
    path, made = path_of(place[0].route.path), {}
    for served in place:
        method = served.route.method
        if served.route.summary and method in METHODS and method.lower() not in made:
            made[method.lower()] = operation(served, path, components, secured=secured)
    return made


def _scheme(kind: str) -> Schema:
    return {"type": "http", "scheme": "bearer", "description": f"A key of the kind {kind}"}
