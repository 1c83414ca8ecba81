"""Twice the input takes at most two and a half times the processor time, in every member of every body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.adversary.growth import growing
from tests.adversary.rig import WHOLE, Attack, Rig, run_rig
from tests.adversary.watch import server_processes, watched
from tests.adversary.wires import Http1

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def with_bodies(attacks: Sequence[Attack]) -> Iterator[Attack]:
    """Requests whose bodies have a schema: one of each schema in each family."""
    found = {}
    for attack in attacks:
        if attack.wire is Http1 and attack.ask.content_type == "application/json":
            found[attack.ask.family, str(attack.ask.schema)] = attack
    return iter(found.values())


async def faults_of(rig: Rig, attacks: Sequence[Attack]) -> list[str]:
    processes = server_processes(rig.server)
    grown = [one for attack in with_bodies(attacks) for one in growing(attack)]
    return [fault for one in grown if (fault := await one.fault(processes))]


def test_every_member_of_every_body(tmp_path: Path) -> None:
    with run_rig(tmp_path, WHOLE) as rig, watched(rig) as faults:
        faults += asyncio.run(faults_of(rig, rig.attacks))
