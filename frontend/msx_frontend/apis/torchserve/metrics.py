"""TorchServe's metrics API: what Prometheus reads."""

from __future__ import annotations

from msx_frontend.keys.key import KINDS
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.exposition import CONTENT_TYPE, exposition
from msx_frontend.metrics.negotiation import wants_openmetrics
from msx_frontend.metrics.openmetrics import CONTENT_TYPE as OPENMETRICS
from msx_frontend.metrics.openmetrics import openmetrics
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_net.keys import Kind

METRICS_PATH = "/metrics"
"""It is the server's own where the metrics API is off, too."""


def metrics_api(metrics: ServerMetrics) -> Family:
    """Either kind of key opens it. The metrics listener asks for none, as TorchServe's does."""

    async def expose(request: Request) -> Reply:
        names = frozenset(request.query.getlist("name[]"))
        form, content_type = exposition, CONTENT_TYPE
        if wants_openmetrics(request.call.header(b"accept")):
            form, content_type = openmetrics, OPENMETRICS
        headers = (("content-type", content_type), ("vary", "accept"))
        return Reply(await metrics.expose(names, form), headers=headers)

    def routes(key: Kind) -> tuple[Route, ...]:
        own = Route(
            "GET",
            METRICS_PATH,
            expose,
            key=key,
            any_method=True,
            summary="For Prometheus",
            operation="metrics",
            queries=(("name[]", "string"),),
        )
        return own, Route("GET", f"{METRICS_PATH}/{{rest:path}}", expose, key=key, any_method=True)

    every = tuple(route for key in KINDS for route in routes(key))
    return Family("metrics", every, torchserve_failure, listener="metrics", closes_on_error=True, compress_replies=True)
