"""Every route and method of the lists, attacked by every kind, at every listener that has it; and the listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.adversary.carrying import carry_out, named
from tests.adversary.connections import HANDSHAKES, besiege, flood, half_handshake
from tests.adversary.kinds import KINDS, Withdrawn
from tests.adversary.rig import SETUPS, Rig, run_rig
from tests.adversary.watch import watched
from tests.soak.floods import FRAMES_OF

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ANSWERED = ("reset_rapidly",)
"""Requests without a key are answered before their reset comes."""


@pytest.fixture(scope="module", params=SETUPS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with run_rig(tmp_path_factory.mktemp("rig"), request.param) as rig:
        yield rig


@pytest.mark.parametrize("name", KINDS)
def test_kind(rig: Rig, name: str) -> None:
    with watched(rig) as faults:
        for kind in KINDS[name]:
            faults += asyncio.run(carry_out(kind, rig.attacks))


def test_withdrawn(rig: Rig) -> None:
    async def test() -> list[str]:
        clients = [(attack.name, Withdrawn(attack)) for attack in rig.attacks if attack.key]
        faults = await asyncio.gather(*(named(name, client.begin()) for name, client in clients))
        await asyncio.to_thread(rig.withdraw)
        faults += await asyncio.gather(*(named(name, client.go_on()) for name, client in clients))
        return [fault for fault in faults if fault]

    with watched(rig) as faults:
        try:
            faults += asyncio.run(test())
        finally:
            rig.readmit()


@pytest.mark.parametrize("name", FRAMES_OF)
def test_frames(rig: Rig, name: str) -> None:
    """Floods of HTTP/2 frames, at every listener."""
    with watched(rig) as faults:
        sieges = flood(FRAMES_OF[name](), refused=name not in ANSWERED)
        faults += asyncio.run(besiege(sieges, rig.doors))


def test_half_handshakes(rig: Rig) -> None:
    with watched(rig) as faults:
        faults += asyncio.run(besiege([half_handshake(begun) for begun in HANDSHAKES] * 20, rig.doors))
