"""`/console`: what an operator sees of the server in a browser, and does to it."""

from __future__ import annotations

from msx_frontend.apis.console.pages import StaticFiles, page_routes
from msx_frontend.net.http.failures import torchserve_failure
from msx_frontend.net.http.family import Family

PATH = "/console"


def console(files: StaticFiles) -> Family:
    """On the management listener. The page itself is public; what it shows asks for the management key."""
    return Family(
        "console",
        page_routes(files, PATH, "console.html"),
        torchserve_failure,
        listener="management",
        owns=("console",),
    )
