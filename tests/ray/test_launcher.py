"""The launcher with real agents and ranks, without Ray."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.rank_group import RankGroup
from msx_protocol import Predict, encode_frame
from msx_ray import launcher as module
from msx_ray.launcher import ClusterLauncher
from msx_ray.placements import placement_of
from msx_ray.remote_generation import RemoteGeneration
from msx_ray.remote_rank import RemoteRank
from msx_ray.reservation import Reservation
from msx_ray.source_limits import SILENT, SPEAKING, SourceLimits
from tests.backend.harness import request
from tests.frontend.workers.handlers import ranks_of, spec_of
from tests.frontend.workers.test_rank_group import Events
from tests.ray.agents import AgentCluster

TELLS = """
import json, os

def handle(data, context):
    return [json.dumps({"of": context.world_size, "ports": os.environ.get("HCCL_IF_BASE_PORT")}) for _ in data]
"""


def in_cluster(folder: Path, test: Callable[[AgentCluster], Awaitable[None]], **spoil: Any) -> None:
    """Nothing is left of it afterwards."""

    async def run() -> None:
        cluster = AgentCluster(folder, **spoil)
        try:
            await asyncio.wait_for(test(cluster), 120)
        finally:
            for reservation in cluster.reservations:
                reservation.release()
            await asyncio.wait_for(asyncio.to_thread(cluster.ended), 120)
        left = folder / "node" / "run"
        assert not left.exists() or os.listdir(left) == []

    asyncio.run(run())


def group_on(reservation: Reservation, folder: Path) -> GroupSpec:
    spec = ranks_of(spec_of(folder, TELLS, env={}), sum(reservation.bundles.ranks))
    return replace(spec, placement=placement_of(reservation))


async def told_by(spec: GroupSpec, launched: Any) -> dict[str, Any]:
    """The answer of the group, which ends."""
    events = Events()
    events.ranks = ranks = RankGroup(spec, events)
    ranks.begin(launched)
    try:
        await ranks.connect()
        ranks.load()
        while not ranks.all_loaded:
            assert not events.exits
            await asyncio.sleep(0.005)
        head, body = request(1, b"x")
        ranks.leader.data.write(encode_frame(Predict([head]), body))
        while not events.bodies:
            await asyncio.sleep(0.005)
    finally:
        ranks.kill()
        await ranks.gone()
    told: dict[str, Any] = json.loads(events.bodies[0])
    return told


class RecordedLimits(SourceLimits):
    """Remembers for which addresses room was kept."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[list[str]] = []

    def reserve(self, addresses: Collection[str]) -> None:
        super().reserve(addresses)
        self.kept.append(list(addresses))


def test_generations_of_one_reservation_have_the_same_agents(tmp_path: Path) -> None:
    """While they come, room is kept for the nodes of the reservation."""

    async def test(cluster: AgentCluster) -> None:
        limits = RecordedLimits()
        reservation, launcher = cluster.place([1, 1]), ClusterLauncher(cluster, "127.0.0.1", limits=limits)
        spec = group_on(reservation, tmp_path)
        for _ in range(2):
            launched = await launcher.launch(spec)
            assert await told_by(spec, launched) == {"of": 2, "ports": None}
            assert [rank.describe().pid for rank in launched] == [None, None], "told_by waits for their ends"
        assert cluster.asked == 1
        assert limits.kept == [["10.0.0.9", "10.0.0.9"]] * 3, "for the agents, and for each generation"
        assert (limits.silent.places, limits.speaking.places) == (SILENT, SPEAKING)

    in_cluster(tmp_path, test)


def test_groups_on_one_node_have_ports_of_their_own(tmp_path: Path) -> None:
    async def test(cluster: AgentCluster) -> None:
        launcher = ClusterLauncher(cluster, "127.0.0.1")
        specs = [group_on(cluster.place([2], devices=True), tmp_path) for _ in range(2)]
        launched = await asyncio.gather(*map(launcher.launch, specs))
        first, second = [await told_by(*one) for one in zip(specs, launched, strict=True)]
        assert None not in (first["ports"], second["ports"])
        assert first["ports"] != second["ports"]

    in_cluster(tmp_path, test)


def test_two_launches_at_once_share_the_agents(tmp_path: Path) -> None:
    async def test(cluster: AgentCluster) -> None:
        reservation, launcher = cluster.place([1]), ClusterLauncher(cluster, "127.0.0.1")
        first, second = await asyncio.gather(*(launcher._crew(reservation) for _ in range(2)))
        assert first is second
        assert cluster.asked == 1

    in_cluster(tmp_path, test)


@pytest.mark.parametrize("spoil", [{"key": "0" * 64}, {"fingerprint": "0" * 64}], ids=["key", "fingerprint"])
def test_an_agent_with_a_wrong_key_or_pin(tmp_path: Path, spoil: dict[str, str], caplog: Any) -> None:
    async def test(cluster: AgentCluster) -> None:
        for limit in (2, 40):  # on a busy machine an agent may come later
            reservation, launcher = cluster.place([1]), ClusterLauncher(cluster, "127.0.0.1", join_limit=limit)
            words = rf"not all agents on node-\d have connected with 127\.0\.0\.1 within {limit} s"
            with pytest.raises(ConnectionError, match=words):
                await launcher.launch(group_on(reservation, tmp_path))
            assert reservation.lost
            if refused_by_key(caplog) == ("key" in spoil):
                return

    in_cluster(tmp_path, test, **spoil)
    assert refused_by_key(caplog) == ("key" in spoil)


def refused_by_key(caplog: Any) -> bool:
    return "it does not have the key" in caplog.text


def test_a_place_that_is_given_back_while_its_agents_are_awaited(tmp_path: Path) -> None:
    """The launch ends at once, and agents that come later are not let in."""

    async def test(cluster: AgentCluster) -> None:
        reservation, launcher = cluster.place([1]), ClusterLauncher(cluster, "127.0.0.1")
        cluster.start_agents = lambda reservation, *rest: reservation.release()  # type: ignore[method-assign]
        with pytest.raises(ConnectionError, match="its place in the cluster was given back"):
            await launcher.launch(group_on(reservation, tmp_path))
        assert launcher._crews == {}
        with pytest.raises(ConnectionError, match="its place in the cluster is gone"):
            await launcher.launch(group_on(reservation, tmp_path))

    in_cluster(tmp_path, test)


def test_a_place_that_is_lost_while_its_agents_are_awaited(tmp_path: Path) -> None:
    """Its node has left the cluster, say."""

    async def test(cluster: AgentCluster) -> None:
        reservation, launcher = cluster.place([1]), ClusterLauncher(cluster, "127.0.0.1")
        cluster.start_agents = lambda reservation, *rest: cluster.lose(reservation, "node-0 is gone")  # type: ignore[method-assign]
        with pytest.raises(ConnectionError, match="node-0 is gone"):
            await launcher.launch(group_on(reservation, tmp_path))
        assert launcher._crews == {}

    in_cluster(tmp_path, test)


def test_a_launch_that_is_cancelled_twice_ends_when_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: AgentCluster) -> None:
        starting, clearing, cleared = asyncio.Event(), asyncio.Event(), asyncio.Event()
        over = False

        async def start(self: RemoteGeneration, *arguments: object) -> list[RemoteRank]:
            starting.set()
            await asyncio.Event().wait()
            return []

        async def clear(self: RemoteGeneration) -> None:
            nonlocal over
            clearing.set()
            await cleared.wait()
            over = True

        monkeypatch.setattr(RemoteGeneration, "start", start)
        monkeypatch.setattr(RemoteGeneration, "clear", clear)
        spec, launcher = group_on(cluster.place([1]), tmp_path), ClusterLauncher(cluster, "127.0.0.1")
        launch = asyncio.create_task(launcher.launch(spec))
        await starting.wait()
        launch.cancel()
        await clearing.wait()
        launch.cancel()
        asyncio.get_running_loop().call_later(0.01, cleared.set)
        with pytest.raises(asyncio.CancelledError):
            await launch
        assert over

    in_cluster(tmp_path, test)


def test_what_cannot_be_read_is_said_with_the_remedy(tmp_path: Path) -> None:
    async def test(cluster: AgentCluster) -> None:
        spec, launcher = group_on(cluster.place([1]), tmp_path), ClusterLauncher(cluster, "127.0.0.1")
        load = spec.ranks[0].load
        load.model_dir = str(tmp_path / "gone")
        with pytest.raises(OSError, match=r"gone cannot be read on the server: .*; register the model again"):
            module._offered(spec)
        with pytest.raises(OSError, match="register the model again"):
            await launcher.launch(spec)

    in_cluster(tmp_path, test)
