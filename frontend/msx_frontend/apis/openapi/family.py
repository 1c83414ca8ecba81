"""/openapi.json of a listener: public, and with a key also what the key's models take and give; and its pages."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from msx_frontend.apis.openapi.browser import DOCS, PAGES, browser_routes
from msx_frontend.apis.openapi.document import document
from msx_frontend.apis.openapi.models import DescribedModel, with_models
from msx_frontend.apis.openapi.schemas import Schema
from msx_frontend.keys.key import KINDS
from msx_net.http.admission import ChecksKeys
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_net.http.router import Router
from msx_net.keys import ClientKey

PATH = "/openapi.json"
Models = Callable[[], Iterable[DescribedModel]]


def openapi(title: str, families: Sequence[Family], models: Models, tokens: ChecksKeys | None) -> Family:
    """Family that describes `families`, all of one listener, and itself.

    `models` are those of whose bodies something is known. `tokens` is None where no keys are asked for: then all models
    are shown.
    """
    every: list[Family] = []
    described = Described(title, every, models, tokens)
    route = Route("GET", PATH, described.show, key=None, summary="This document: OpenAPI 3.1")
    more = [page for page in PAGES if any(page in family.owns for family in families)]
    routes = (route, *browser_routes(title, more))
    made = Family("Description", routes, own_failure, closes_on_error=True, owns=(DOCS[1:],))
    every += [made, *families]
    return made


class Described:
    """`families` is read when the first document is asked for."""

    def __init__(self, title: str, families: Sequence[Family], models: Models, tokens: ChecksKeys | None) -> None:
        self._title, self._families, self._models, self._tokens = title, families, models, tokens
        self._routes: tuple[Route, ...] = ()
        self._document: Schema = {}
        """Description of these routes, without models."""

    async def show(self, request: Request) -> Reply:
        """Raises InvalidKey for a key that is not valid, TooManyRequests."""
        models, present = list(self._models_for(request)), [_present(family) for family in self._families]
        return Reply(await asyncio.to_thread(self._encoded, present, models))

    def _models_for(self, request: Request) -> Iterable[DescribedModel]:
        call = request.call
        if self._tokens is None:
            return self._models()
        if not call.authorization:
            return ()
        call.use(key := self._tokens.check_any(KINDS, call.authorization))
        return (one for one in self._models() if _may_use(key, one.name))

    def _encoded(self, families: list[Family], models: list[DescribedModel]) -> bytes:
        """Encode the document, on a thread: a large one takes longer than the event loop may wait."""
        routes = tuple(route for family in families for route in family.routes)
        made, known = self._document, self._routes
        if routes != known:
            made = document(self._title, Router(families, families[0]), secured=self._tokens is not None)
            self._document, self._routes = made, routes
        return msgspec.json.encode(with_models(made, models) if models else made)


def _present(family: Family) -> Family:
    """The family with the routes that exist now."""
    routes = (route for route in family.routes if route.when is None or route.when())
    return family._replace(routes=tuple(route._replace(when=None) for route in routes))


def _may_use(key: ClientKey, model: str) -> bool:
    return "inference" in key.kinds and key.allows(model)
