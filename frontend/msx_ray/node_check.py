"""Whether an agent can run on a node, by what the holder of its bundle tells."""

import platform
import sys
from collections.abc import Mapping
from typing import Any

from msx_frontend.plugins import SERVER_VERSION


def node_problem(told: Mapping[str, Any]) -> str:
    """A sentence that names the node, what it has and how that is mended; "" where it suits."""
    node, own = told["node"], f"{sys.platform}-{platform.machine()}"
    install = f"run `pip install msx-serve=={SERVER_VERSION}` there, in the Python that Ray was started with"
    if not told["version"]:
        return f"Node {node} has no msx-serve, and this server is {SERVER_VERSION}: {install}."
    if told["version"] != SERVER_VERSION:
        return f"Node {node} has msx-serve {told['version']}, and this server is {SERVER_VERSION}: {install}."
    if _minor(told["python"]) != _minor(platform.python_version()):
        return (
            f"Node {node} has Python {told['python']}, and this server has {platform.python_version()}: start Ray "
            f"there with Python {_minor(platform.python_version())}, and {install}."
        )
    if told["platform"].partition("-")[0] != sys.platform:
        return f"Node {node} runs on {told['platform']}, and this server on {own}: agents need {sys.platform}."
    return ""


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
