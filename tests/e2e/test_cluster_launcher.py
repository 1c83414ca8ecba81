"""Groups whose ranks run on two nodes of a real Ray cluster, and what remains when something of it is killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from msx_frontend.cluster.cluster import Cluster
from msx_frontend.cluster.launcher import ClusterLauncher
from msx_frontend.cluster.reservation import Bundles, Reservation
from msx_frontend.devices.nodes import Placement, Share
from msx_frontend.workers.rank_group import RankGroup
from msx_protocol import Predict, encode_frame
from tests.e2e.cluster import RayCluster, run_cluster
from tests.unit.backend.harness import request
from tests.unit.frontend.workers.handlers import ranks_of, spec_of
from tests.unit.frontend.workers.test_rank_group import Events

pytest.importorskip("ray")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LIMIT = 60.0
WHERE = """
import os

def handle(data, context):
    meeting = os.environ["MASTER_ADDR"], os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return [f"{context.rank} of {context.world_size} {meeting} " + str(len(row["body"])) for row in data]
"""
APART = Bundles(({"CPU": 1.0, "NPU": 1.0},) * 2, (1, 1), "STRICT_SPREAD")


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    with run_cluster() as cluster:
        yield cluster


@asynccontextmanager
async def joined(nodes: RayCluster) -> AsyncIterator[Cluster]:
    cluster = Cluster(nodes.address)
    cluster.start()
    try:
        await until(lambda: not cluster.problem and len(cluster.nodes) == len(nodes.nodes), lambda: cluster.problem)
        yield cluster
    finally:
        for reservation in cluster.reservations:
            reservation.release()
        await cluster.close()


async def until(condition: Callable[[], Any], explain: Callable[[], Any] = lambda: "", limit: float = LIMIT) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, explain()
        await asyncio.sleep(0.005)


async def granted(cluster: Cluster, bundles: Bundles = APART) -> Reservation:
    reservation = cluster.reserve(bundles)
    await until(lambda: reservation.granted, lambda: reservation.waits_for or reservation.lost or cluster.problem)
    return reservation


def placement_of(reservation: Reservation) -> Placement:
    shares, first = [], 0
    for place, count in zip(reservation.places, reservation.bundles.ranks, strict=True):
        shares.append(Share(place.node, place.address, tuple(range(first, first + count)), place.devices))
        first += count
    return Placement(reservation.id, tuple(shares))


@asynccontextmanager
async def running(
    launcher: ClusterLauncher, reservation: Reservation, folder: Path, code: str = WHERE
) -> AsyncIterator[tuple[RankGroup, Events]]:
    events = Events()
    spec = ranks_of(spec_of(folder, code, env={}), sum(reservation.bundles.ranks))
    spec = replace(spec, placement=placement_of(reservation))
    events.ranks = ranks = RankGroup(spec, events)
    ranks.begin(await launcher.launch(spec))
    try:
        await ranks.connect()
        ranks.load()
        await until(lambda: ranks.all_loaded or events.exits, lambda: ranks.slowest)
        yield ranks, events
    finally:
        ranks.kill()
        await asyncio.wait_for(ranks.gone(), LIMIT)


async def answer(group: tuple[RankGroup, Events], body: bytes) -> bytes:
    ranks, events = group
    events.bodies.clear()
    head, content = request(1, body)
    ranks.leader.data.write(encode_frame(Predict([head]), content))
    await until(lambda: events.bodies, lambda: events.messages)
    return events.bodies[0]


def test_one_rank_on_each_node(nodes: RayCluster, tmp_path: Path) -> None:
    async def test() -> None:
        async with joined(nodes) as cluster:
            t0 = time.monotonic()
            reservation = await granted(cluster)
            print("placed", time.monotonic() - t0, reservation.places)
            t0 = time.monotonic()
            launcher = ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as group:
                print("loaded", time.monotonic() - t0)
                print(await answer(group, b"x"))
                large = b"x" * (30 << 20)
                t0 = time.monotonic()
                assert len(await answer(group, large)) < 300
                print("30 MB", time.monotonic() - t0)
            t0 = time.monotonic()
            async with running(launcher, reservation, tmp_path) as group:
                print("again", time.monotonic() - t0)
                print(await answer(group, b"y"))
                reservation.release()
        
    uvloop.run(test())
    t0 = time.monotonic()
    nodes.assert_empty()
    print("empty", time.monotonic() - t0)
