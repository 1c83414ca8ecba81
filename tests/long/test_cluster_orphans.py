"""Leftovers in Ray's line of a server that has died together with its driver."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.cluster import RayCluster, run_cluster

pytest.importorskip("ray")

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(120)]

DEAD = """
import os, sys
from msx_ray.driver.connection import RayConnection
from msx_ray.driver.groups import Group
from msx_ray.driver.orphans import Orphans
RayConnection(sys.argv[1]).open()
Orphans("dead").look(0.0)
Group("msx-dead-1", [{"NPU": 100.0}], "PACK")
os._exit(9)
"""
LIVING = """
import sys, time
from msx_ray.driver import orphans
from msx_ray.driver.connection import RayConnection
RayConnection(sys.argv[1]).open()
one = orphans.Orphans("living")
print([name for now in (0.0, 30.0, 660.0) for name in one.look(now)])
one.close()
"""


@pytest.fixture
def nodes() -> Iterator[RayCluster]:
    with run_cluster(1) as cluster:
        yield cluster


def test_a_reservation_of_a_dead_server_is_removed(nodes: RayCluster) -> None:
    assert subprocess.run([sys.executable, "-c", DEAD, nodes.address], check=False).returncode == 9
    assert nodes.left() == ["msx-dead-1"]
    done = subprocess.run([sys.executable, "-c", LIVING, nodes.address], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "['msx-dead-1']"
    assert nodes.left() == []
