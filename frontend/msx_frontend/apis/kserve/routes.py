"""The paths of the protocol: which answer each has, for which method, and whose token it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from msx_frontend.apis.kserve.repository import Unsupported
from msx_frontend.keys.key import Kind


@dataclass(frozen=True)
class Route:
    """`answer` names a method of `Answers`."""

    method: Literal["GET", "POST"]
    answer: str
    key: Kind | None = "inference"
    """Which key it needs; None for what tells nothing but yes or no."""


@dataclass(frozen=True)
class Found:
    route: Route
    model: str = ""
    version: str | None = None


EXACT = {
    "/v2": Route("GET", "server"),
    "/v2/health/live": Route("GET", "live", None),
    "/v2/health/ready": Route("GET", "ready", None),
    "/v2/models": Route("GET", "models"),
    "/v2/models/stats": Route("GET", "all_statistics"),
    "/v2/repository/index": Route("POST", "index"),
}
OF_MODEL = {
    "": Route("GET", "model"),
    "/ready": Route("GET", "model_ready"),
    "/infer": Route("POST", "infer"),
    "/explain": Route("POST", "explain"),
    "/config": Route("GET", "config"),
    "/stats": Route("GET", "statistics"),
}
OF_REPOSITORY = {"load": Route("POST", "load", "management"), "unload": Route("POST", "unload", "management")}

_MODEL = re.compile(r"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?(?P<rest>/[a-z]+)?")
_REPOSITORY = re.compile(r"/v2/repository/models/(?P<model>[^/]+)/(?P<what>load|unload)")


NOT_SERVED = {
    re.compile(r"/v2/(?:system|cuda)sharedmemory(?:/.*)?"): "Shared memory is not served here: send and take tensors "
    "as bytes of the request (binary_data).",
    re.compile(r"/v2(?:/models/[^/]+)?/trace/setting"): "Traces are not served here: /v2/models/stats and the metrics "
    "tell where the time goes.",
    re.compile(r"/v2/logging"): "Log settings are the server's own here: start it with --log-config.",
}
"""Triton's extensions that its clients ask for, and what to do instead."""


def refusal(path: str) -> Unsupported | None:
    """Of an extension that is not served; None for what no client of the protocol asks for."""
    return next((Unsupported(remedy) for known, remedy in NOT_SERVED.items() if known.fullmatch(path)), None)


def find(path: str) -> Found | None:
    if path in EXACT:
        return Found(EXACT[path])
    if named := _REPOSITORY.fullmatch(path):
        return Found(OF_REPOSITORY[named["what"]], named["model"])
    named = _MODEL.fullmatch(path)
    route = OF_MODEL.get(named["rest"] or "") if named else None
    return Found(route, named["model"], named["version"]) if named and route else None
