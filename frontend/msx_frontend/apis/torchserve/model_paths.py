"""Paths that models ask for themselves: `routes:` with a key that begins with a slash."""

from __future__ import annotations

from collections.abc import Callable

from msx_core.service_errors import ResourceNotFound
from msx_frontend.apis.torchserve.packed_bodies import around
from msx_frontend.apis.torchserve.predictions import MODEL, Submit
from msx_frontend.body_fields import fields_parser
from msx_frontend.declared_jobs import DeclaredJobs
from msx_frontend.job import Job, method_kind
from msx_frontend.job_headers import KeptHeaders
from msx_net.http.family import Family, JobRoute, JobTemplate, Names, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.router import Match
from msx_net.keys import ClientKey

OwnerOf = Callable[[str], str | None]
"""The model that has a path."""
Declares = Callable[[str, str | None, str], DeclaredJobs | None]
"""Types that a model and version declares for jobs of a kind."""


class ModelPaths:
    """Routes of paths that no family has, for the router. They come and go with their models."""

    def __init__(self, family: Family, owner_of: OwnerOf, submit: Submit, declares: Declares) -> None:
        self._family, self._owner_of, self._submit, self._declares = family, owner_of, submit, declares

    def match(self, method: str, path: str) -> Match | None:
        """Any method predicts, as with TorchServe's paths."""
        model = self._owner_of(path)
        if model is None or method in ("HEAD", "OPTIONS"):
            return None
        route = Route("POST", path, JobRoute(self._template), any_method=True, model=MODEL, when=_while_it_is_there)
        return Match(self._family, route, {MODEL: model}, ("inference",))

    def _template(self, head: Head, names: Names) -> JobTemplate:
        made = PathTemplate(self._owner_of, self._submit, self._declares, head)
        return around(made, head.content_encoding if self._family.takes_as_sent else "")


class PathTemplate:
    """Parts of a job that a head decides; each request looks its model up: a client may send its head for long."""

    def __init__(self, owner_of: OwnerOf, submit: Submit, declares: Declares, head: Head) -> None:
        self._owner_of, self._submit, self._path = owner_of, submit, head.path
        self._headers, self._kind = KeptHeaders(head.headers()), method_kind(head.path)
        self._declares, self._fields = declares, fields_parser(head.content_type, self._takes_whole)
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        model = self._owner_of(self._path)
        if model is None:
            raise ResourceNotFound
        if self.key is not None:
            self.key.check_model(model)
        job = sink.job = Job(id, model, None, self._fields(body), self._headers, sink, kind=self._kind)
        self._submit(job)

    def takes_packed(self, encoding: str) -> bool:
        """Bodies are decompressed for the model. Raises CompressionSwitchedOff."""
        declared = self._declared()
        return declared is not None and declared.takes_packed(self._owner_of(self._path) or "", encoding)

    def _takes_whole(self) -> bool:
        declared = self._declared()
        return declared is not None and declared.takes_whole

    def _declared(self) -> DeclaredJobs | None:
        model = self._owner_of(self._path)
        return None if model is None else self._declares(model, None, self._kind)


def _while_it_is_there() -> bool:
    """The route of a path is found anew for each head."""
    return True
