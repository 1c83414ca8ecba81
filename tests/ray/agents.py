"""A cluster without Ray: what a holder does on a node, the test's process does with real agents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from msx_ray.agent.invitation import Invitation
from msx_ray.reservation import Bundles, Reservation
from tests.ray.fake_cluster import FakeCluster


class AgentCluster(FakeCluster):
    """Its nodes are on this machine, at 127.0.0.1. `spoil` changes what an agent is invited with."""

    def __init__(self, folder: Path, **spoil: Any) -> None:
        super().__init__()
        self._env = {**os.environ, "MSX_NODE_CACHE": str(folder / "node"), "MSX_NODE_SHARED": "true"}
        self.spoil = spoil
        self.alive: list[int] = []
        """The end of each is the end of its agent."""
        self.asked = 0
        """How often agents were started."""

    def place(self, ranks: Sequence[int], devices: bool = False) -> Reservation:
        """With so many ranks on each of as many nodes."""
        resource = "NPU" if devices else "CPU"
        made = self.reserve(Bundles(tuple({resource: float(count)} for count in ranks), tuple(ranks), "STRICT_SPREAD"))
        self.grant(made, *(f"node-{number}" for number in range(len(ranks))))
        return made

    def start_agents(self, reservation: Reservation, addresses: Sequence[str], port: int, key: str, pin: str) -> None:
        self.asked += 1
        for place in reservation.places:
            told = {"addresses": list(addresses), "port": port, "key": key, "fingerprint": pin, **self.spoil}
            invitation = Invitation(
                share=place.bundle,
                node=place.node,
                devices=list(place.devices),
                resource=reservation.bundles.resource,
                **told,
            )
            self.alive.append(_started(invitation, self._env))

    def ended(self) -> None:
        """Returns when all agents have; they have closed their ends then."""
        for alive in self.alive:
            while os.read(alive, 1):
                pass
            os.close(alive)
        self.alive = []


def _started(invitation: Invitation, env: dict[str, str]) -> int:
    alive, agents_end = os.pipe()
    command = [sys.executable, "-m", "msx_ray.agent", "--alive-fd", str(agents_end)]
    try:
        subprocess.run(command, input=msgspec.json.encode(invitation), pass_fds=[agents_end], env=env, check=True)
    finally:
        os.close(agents_end)
    return alive
