"""Paths that models ask for themselves: `routes:` with a key that begins with a slash."""

from __future__ import annotations

from collections.abc import Callable

from msx_core.service_errors import ResourceNotFound
from msx_frontend.apis.torchserve.predictions import MODEL, Submit
from msx_frontend.body_fields import fields_parser
from msx_frontend.job import Job, KeptHeaders, method_kind
from msx_net.http.family import Family, JobRoute, Names, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.router import Match
from msx_net.keys import ClientKey

OwnerOf = Callable[[str], str | None]
"""The model that has a path."""
TakesWhole = Callable[[str, str | None, str], bool]
"""Whether bodies of a model's and version's jobs of a kind are left in one piece."""


class ModelPaths:
    """Routes of paths that no family has, for the router. They come and go with their models."""

    def __init__(self, family: Family, owner_of: OwnerOf, submit: Submit, takes_whole: TakesWhole) -> None:
        self._family, self._owner_of, self._submit, self._takes_whole = family, owner_of, submit, takes_whole

    def match(self, method: str, path: str) -> Match | None:
        """Any method predicts, as with TorchServe's paths."""
        model = self._owner_of(path)
        if model is None or method in ("HEAD", "OPTIONS"):
            return None
        route = Route("POST", path, JobRoute(self._template), any_method=True, model=MODEL, when=_while_it_is_there)
        return Match(self._family, route, {MODEL: model}, ("inference",))

    def _template(self, head: Head, names: Names) -> PathTemplate:
        return PathTemplate(self._owner_of, self._submit, self._takes_whole, head)


class PathTemplate:
    """Parts of a job that a head decides; each request looks its model up: a client may send its head for long."""

    def __init__(self, owner_of: OwnerOf, submit: Submit, takes_whole: TakesWhole, head: Head) -> None:
        self._owner_of, self._submit, self._path = owner_of, submit, head.path
        self._headers, self._kind = KeptHeaders(head.headers()), method_kind(head.path)
        self._takes_whole, self._fields = takes_whole, fields_parser(head.content_type, self._is_whole)
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        model = self._owner_of(self._path)
        if model is None:
            raise ResourceNotFound
        if self.key is not None:
            self.key.check_model(model)
        job = sink.job = Job(id, model, None, self._fields(body), self._headers, sink, kind=self._kind)
        self._submit(job)

    def _is_whole(self) -> bool:
        model = self._owner_of(self._path)
        return model is not None and self._takes_whole(model, None, self._kind)


def _while_it_is_there() -> bool:
    """The route of a path is found anew for each head."""
    return True
