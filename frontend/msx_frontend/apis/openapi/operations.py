"""One route as an operation of the document."""

import re

from msx_core.priorities import HEADER, NAMES
from msx_frontend.apis.openapi.schemas import EVENTS_TYPE, LINES_TYPE, Components, Schema, prefix_of
from msx_frontend.models.schemas.body import ANY_CONTENT, JSON_TYPE
from msx_net.http.family import JobRoute, Route
from msx_net.http.route_tree import ServedRoute

METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"})
"""Methods that OpenAPI knows."""
_WITH_BODY = ("POST", "PUT", "PATCH")
REQUIRED = "url"
"""The only query parameter that calls need."""


def path_of(template: str) -> str:
    """As OpenAPI has it, which knows no names of several segments."""
    return re.sub(r"{(\w+):path}", r"{\1}", template)


def operation(served: ServedRoute, path: str, components: Components, *, secured: bool) -> Schema:
    """`path` is OpenAPI's, whose names may differ from the route's. `secured`: the listener asks for keys."""
    route, family = served.route, served.family
    made: Schema = {
        "tags": [family.name],
        "summary": route.summary,
        "operationId": operation_id(route.method, path),
        "responses": {**_replies(served, components), "default": _error(served, components)},
    }
    if parameters := [*_names(path), *_queries(route), *_headers(route)]:
        made["parameters"] = parameters
    if body := _body(served, components):
        made["requestBody"] = body
    if secured:
        made["security"] = [{kind: []} for kind in served.kinds]
    return made


def operation_id(method: str, path: str) -> str:
    """Another one for each operation: clients make names of functions from it."""
    return "_".join([method.lower(), *re.findall(r"\w+", path)])


def _names(path: str) -> list[Schema]:
    return [
        {"in": "path", "name": name, "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _queries(route: Route) -> list[Schema]:
    return [
        {
            "in": "query",
            "name": name,
            "required": name == REQUIRED and not _takes_object(route),
            "schema": _query(name, kind),
        }
        for name, kind in route.queries
    ]


def _headers(route: Route) -> list[Schema]:
    """Requests that are jobs have a class."""
    if not isinstance(route.answer, JobRoute):
        return []
    known = {"type": "string", "enum": [*NAMES], "default": "normal"}
    return [{"in": "header", "name": HEADER, "required": False, "schema": known}]


def _query(name: str, kind: str) -> Schema:
    return {"type": "array", "items": {"type": kind}} if name.endswith("[]") else {"type": kind}


def _takes_object(route: Route) -> bool:
    """TorchServe's management: its parameters may be members of a JSON object, too."""
    return route.method in _WITH_BODY and bool(route.queries) and not isinstance(route.answer, JobRoute)


def _body(served: ServedRoute, components: Components) -> Schema:
    route = served.route
    if route.request_schema is not None:
        schema = components.schema(route.request_schema, prefix_of(served.family))
        return {"required": True, "content": {JSON_TYPE: _with_example(route, schema)}}
    if _takes_object(route):
        members = {name: _query(name, kind) for name, kind in route.queries}
        return {"content": {JSON_TYPE: _with_example(route, {"type": "object", "properties": members})}}
    return {"content": ANY_CONTENT} if route.method in _WITH_BODY else {}


def _with_example(route: Route, schema: Schema) -> Schema:
    return {"schema": schema} if route.example is None else {"schema": schema, "example": route.example}


def _replies(served: ServedRoute, components: Components) -> Schema:
    content = _content(served, components)
    return {str(status): {"description": text, **content} for status, text in served.route.statuses}


def _error(served: ServedRoute, components: Components) -> Schema:
    """Other models answer some paths of a family by an API of their own."""
    if served.route.whose is None:
        return components.error(served.family)
    return {"description": f"An error, as {served.family.name} has it, or as the API that the model has instead"}


def _content(served: ServedRoute, components: Components) -> Schema:
    route, prefix = served.route, prefix_of(served.family)
    types = {JSON_TYPE: route.response_schema, EVENTS_TYPE: route.events_schema}
    known = {name: {"schema": components.schema(one, prefix)} for name, one in types.items() if one is not None}
    if route.in_lines:
        known[LINES_TYPE] = {"schema": {"type": "string", "description": "Lines of JSON, each as the reply in JSON is"}}
    if route.whose is not None:
        known = {**known, **ANY_CONTENT}  # of other models
    elif not known and isinstance(route.answer, JobRoute):
        known = ANY_CONTENT
    return {"content": known} if known else {}
