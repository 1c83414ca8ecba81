"""A node that no agent can run on is told in one sentence, with the remedy."""

from __future__ import annotations

import platform
import sys

import pytest

from msx_frontend import __version__
from msx_ray.node_check import node_problem

GOOD = {
    "node": "b",
    "version": __version__,
    "python": platform.python_version(),
    "platform": f"{sys.platform}-{platform.machine()}",
}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"version": ""}, f"Node b has no msx-serve, and this server is {__version__}: run `pip install msx-serve=="),
        ({"version": "0.0.1"}, f"Node b has msx-serve 0.0.1, and this server is {__version__}: run `pip install"),
        ({"python": "3.7.1"}, "Node b has Python 3.7.1, and this server has 3."),
        ({"platform": "darwin-arm64"}, "Node b runs on darwin-arm64, and this server on linux-"),
    ],
)
def test_the_node_and_the_remedy_are_named(told: dict[str, str], said: str) -> None:
    assert node_problem({**GOOD, **told}).startswith(said)


def test_a_node_like_the_server_suits() -> None:
    assert node_problem(GOOD) == ""
