"""`/models/{model_name}/aliases`: further names of a model, over the calls of `ModelApi`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from msx_frontend.models.aliases import AliasList
from msx_frontend.models.model_api import StatusMessage
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import STATUS_SCHEMA, status_reply
from msx_net.http.request import Request

PATH = "/models/{model_name}/aliases"


class ReplacesAliases(Protocol):
    """ModelApi."""

    def replace_aliases(self, name: str, value: object) -> Coroutine[Any, Any, StatusMessage]:
        """`value` is the body. Raises ServiceError."""


def aliases(models: ReplacesAliases) -> Family:
    async def replace(request: Request) -> Reply:
        return status_reply(*await models.replace_aliases(request.names["model_name"], request.json()))

    route = Route(
        "PUT",
        PATH,
        replace,
        key="management",
        summary="Replace the aliases of a model: further names by which requests ask for it",
        operation="replaceAliases",
        model="",
        request_schema=AliasList,
        example={"aliases": ["a-name", "org/name"]},
        response_schema=STATUS_SCHEMA,
    )
    return Family("aliases", (route,), own_failure, listener="management", closes_on_error=True)
