"""Which model a prediction's path means: TorchServe's route, its older ones, SageMaker's and KServe's."""

from __future__ import annotations

import re
from typing import NamedTuple

from msx_frontend.job import EXPLAIN, PREDICT


class Target(NamedTuple):
    """`model` is None where a parameter names it; `headers` are what the handler sees besides the client's."""

    model: str | None
    version: str | None = None
    kind: str = PREDICT
    headers: tuple[tuple[str, str], ...] = ()
    takes_query: bool = False
    """Query parameters are inputs."""


_OWN = ("/predictions/", "/explanations/")
_OTHERS = re.compile(
    r"/(?P<invocations>invocations)"
    r"|/models/(?P<invoked>[^/]+)/invoke"
    r"|/v1/models/(?P<kserve>[^/]+):(?P<verb>predict|explain)"
    r"|/(?P<legacy>(?!models/|v[12]/)[^/]+)(?:/(?P<version>[^/]+))?/predict"
)
_PREDICT = (("explain", "False"),)
_EXPLAIN = (("explain", "True"),)


def target_of(path: str) -> Target | None:
    """None for the path of something else; it has no slash at its end."""
    if path.startswith(_OWN):
        return _own(path)
    match = _OTHERS.fullmatch(path)
    if match is None:
        return None
    if match["kserve"]:
        return _kserve(match["kserve"], explains=match["verb"] == "explain")
    return Target(match["invoked"] or match["legacy"], match["version"], takes_query=True)


def _own(path: str) -> Target | None:
    _, name, *rest = path.split("/", 4)
    model, version, url_path = [*rest, "", ""][:3]
    if not model:
        return None
    explains = name == "explanations"
    headers = (*(_EXPLAIN if explains else _PREDICT), ("url_path", url_path))
    return Target(model, version or None, EXPLAIN if explains else PREDICT, headers)


def _kserve(model: str, *, explains: bool) -> Target:
    return Target(model, None, EXPLAIN if explains else PREDICT, _EXPLAIN if explains else _PREDICT)
