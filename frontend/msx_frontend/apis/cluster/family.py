"""The cluster that workers run on, for those who look after it."""

from __future__ import annotations

from msx_core.service_errors import ResourceNotFound
from msx_frontend.workers.workplace import Report
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import json_reply
from msx_net.http.request import Request

NONE = "This server has no cluster: its workers run on this machine, because cluster_address is not set."


def cluster_api(report: Report | None) -> Family:
    """`report` is None where the server has no cluster: then the route says so."""

    async def show(request: Request) -> Reply:
        if report is None:
            raise ResourceNotFound(NONE)
        return json_reply(report())

    summary = "The cluster that workers run on: its nodes, who holds which devices, and what waits for what"
    route = Route("GET", "/cluster", show, key="management", summary=summary, operation="cluster")
    return Family("cluster", (route,), own_failure, listener="management", closes_on_error=True)
