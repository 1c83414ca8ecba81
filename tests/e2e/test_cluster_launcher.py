"""Groups whose ranks run on two nodes of a real Ray cluster, and what remains when something of it is killed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from msx_frontend.devices.nodes import GroupPlacement, Share
from msx_frontend.workers.rank_group import RankGroup
from msx_protocol import Predict, encode_frame
from msx_ray.cluster import Cluster
from msx_ray.launcher import ClusterLauncher
from msx_ray.reservation import Bundles, Reservation
from tests.backend.harness import request
from tests.e2e.cluster import RayCluster, run_cluster
from tests.frontend.workers.handlers import ranks_of, spec_of
from tests.frontend.workers.test_rank_group import Events
from tests.processes import is_alive

pytest.importorskip("ray")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LIMIT = 120.0
WHERE = """
import os

def handle(data, context):
    meeting = os.environ["MASTER_ADDR"], os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return [f"{context.rank} of {context.world_size} {meeting} " + str(len(row["body"])) for row in data]
"""
APART = Bundles(({"CPU": 1.0, "NPU": 1.0},) * 2, (1, 1), "STRICT_SPREAD")


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    with run_cluster(1) as cluster:
        cluster.add_node(num_gpus=2)
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


def placement_of(reservation: Reservation) -> GroupPlacement:
    shares, first = [], 0
    for place, count in zip(reservation.places, reservation.bundles.ranks, strict=True):
        shares.append(Share(place.node, place.address, tuple(range(first, first + count)), place.devices))
        first += count
    return GroupPlacement(reservation.id, tuple(shares))


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
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            assert [place.devices for place in reservation.places] == [("0",), ("0",)]
            assert {place.address for place in reservation.places} == {"127.0.0.2", "127.0.0.3"}
            meeting = ("127.0.0.1", "0")
            for size in (1, 30 << 20):  # its agents stay for the second generation
                async with running(launcher, reservation, tmp_path) as group:
                    assert await answer(group, b"x" * size) == f"0 of 2 {meeting} {size}".encode()
            assert len(nodes.agents) == 2
            if os.geteuid() == 0:  # who else may raise a priority
                assert {agent.nice() for agent in nodes.agents} == {os.nice(0)}, "not that of Ray's workers"
        assert cluster.reservations == []

    uvloop.run(test())
    nodes.assert_empty()


def test_gpus_of_a_node(nodes: RayCluster) -> None:
    """It refuses them among other resources, and numbers them as NVML does."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation = await granted(cluster, Bundles(({"GPU": 2.0},), (1,), "PACK"))
            assert [(place.devices, place.problem) for place in reservation.places] == [(("0", "1"), "")]

    uvloop.run(test())
    nodes.assert_empty()


def test_agents_with_a_wrong_key_are_refused(
    nodes: RayCluster, tmp_path: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with joined(nodes) as cluster:
            start, reservation = cluster.start_agents, await granted(cluster)

            def start_with_another_key(one: Reservation, at: Sequence[str], port: int, key: str, pin: str) -> None:
                start(one, at, port, key[::-1], pin)

            monkeypatch.setattr(cluster, "start_agents", start_with_another_key)
            launcher = ClusterLauncher(cluster, "127.0.0.1", LIMIT)
            with pytest.raises(ConnectionError, match=r"its holder is gone|actor is dead"):
                async with running(launcher, reservation, tmp_path):
                    raise AssertionError
            assert "a connection to a port for agents was refused: it does not have the key" in caplog.text

    uvloop.run(test())
    nodes.assert_empty()


def test_a_killed_rank(nodes: RayCluster, tmp_path: Path) -> None:
    """Told at once; the group starts again where it was."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as (ranks, events):
                psutil.Process(ranks[1].describe()["pid"]).kill()
                await told(lambda: 1 in events.exits)
                assert events.exits[1] == -9
            agents = nodes.agents
            async with running(launcher, reservation, tmp_path) as group:
                assert (await answer(group, b"x")).endswith(b" 1")
            assert nodes.agents == agents
            assert not reservation.lost

    uvloop.run(test())
    nodes.assert_empty()


@pytest.mark.long
def test_a_killed_agent(nodes: RayCluster, tmp_path: Path) -> None:
    """Its rank goes with it, and the place is lost: the group needs another one."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as (ranks, events):
                lost = psutil.Process(ranks[1].describe()["pid"])
                psutil.Process(lost.ppid()).kill()
                await told(lambda: 1 in events.exits)
                await told(lambda: not is_alive(lost))
                await told(lambda: reservation.lost)
                assert reservation.lost.startswith("the agent on node ")
            reservation.release()
            other = await granted(cluster)
            async with running(launcher, other, tmp_path) as group:
                assert (await answer(group, b"x")).endswith(b" 1")

    uvloop.run(test())
    nodes.assert_empty()


@pytest.mark.long
def test_a_killed_driver(nodes: RayCluster, tmp_path: Path) -> None:
    """Groups go on; the next one knows what the cluster has given."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as group:
                assert cluster.driver_pid is not None
                psutil.Process(cluster.driver_pid).kill()
                await told(lambda: cluster.problem)
                assert "The process that talks to Ray ended with code -9" in cluster.problem
                waiting = cluster.reserve(APART)
                assert waiting.waits_for == cluster.problem.rstrip(".")
                assert (await answer(group, b"x")).endswith(b" 1")
                await until(lambda: not cluster.problem, lambda: cluster.problem)
                await until(lambda: waiting.granted, lambda: waiting.waits_for)
                assert not reservation.lost
                assert (await answer(group, b"xx")).endswith(b" 2")

    uvloop.run(test())
    nodes.assert_empty()


def test_a_killed_holder(nodes: RayCluster, tmp_path: Path) -> None:
    """The group serves until the server moves it."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as group:
                nodes.holders[0].kill()
                await until(lambda: reservation.lost)
                assert (await answer(group, b"x")).endswith(b" 1")

    uvloop.run(test())
    nodes.assert_empty()


def test_a_killed_raylet(nodes: RayCluster, tmp_path: Path) -> None:
    """As after the loss of a node, but for what ran there; another node that joins takes its place."""

    async def test() -> None:
        async with joined(nodes) as cluster:
            reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
            async with running(launcher, reservation, tmp_path) as group:
                started = time.monotonic()
                nodes.kill(1)
                await until(lambda: reservation.lost)
                print(f"told after {time.monotonic() - started:.1f} s: {reservation.lost}")
                assert (await answer(group, b"x")).endswith(b" 1")
            reservation.release()
            other = cluster.reserve(APART)
            await until(lambda: other.waits_for)
            await asyncio.to_thread(nodes.add_node)
            await until(lambda: other.granted, lambda: other.lost or other.waits_for)
            async with running(launcher, other, tmp_path) as group:
                assert (await answer(group, b"x")).endswith(b" 1")

    uvloop.run(test())
    nodes.assert_empty()


@pytest.mark.long
def test_a_killed_head(tmp_path: Path) -> None:
    """Groups serve without it, also when Ray's processes on their nodes have ended for the lack of it. A head that was
    started anew knows nothing of them: they move."""

    async def test() -> None:
        with run_cluster() as old:
            async with joined(old) as cluster:
                reservation, launcher = await granted(cluster), ClusterLauncher(cluster, "127.0.0.1")
                async with running(launcher, reservation, tmp_path) as group:
                    old.kill(0, "gcs_server")
                    await told(lambda: cluster.problem)
                    assert cluster.problem.startswith(f"Ray's head at {old.address} does not answer")
                    old.kill_all()
                    for _ in range(50):
                        assert (await answer(group, b"x")).endswith(b" 1")
                        assert not reservation.lost
                        await asyncio.sleep(0.1)
                    with run_cluster(port=int(old.address.rpartition(":")[2])) as new:
                        await until(lambda: reservation.lost, lambda: cluster.problem)
                        assert "started anew" in reservation.lost
                        assert not cluster.problem
                        assert (await answer(group, b"x")).endswith(b" 1")
                        reservation.release()
                        other = await granted(cluster)
                        async with running(launcher, other, tmp_path) as moved:
                            assert (await answer(moved, b"x")).endswith(b" 1")
                        other.release()
                        await asyncio.to_thread(new.assert_empty)
                await until(lambda: not old.agents)

    uvloop.run(test())


async def told(condition: Callable[[], Any]) -> None:
    started = time.monotonic()
    await until(condition)
    print(f"told after {time.monotonic() - started:.2f} s")
