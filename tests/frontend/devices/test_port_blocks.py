"""Each group has ports of its own, as long as it has its lease."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msx_frontend.devices.errors import NoPortsError, PortsHeldError
from msx_frontend.devices.pool import DevicePool
from tests.frontend.devices.fake_accelerator import PORTS, FakeAccelerator
from tests.frontend.devices.test_pool import PLAIN, group
from tests.frontend.harness import Harness, in_harness, until

TP2 = "parallelType: tp\nparallelLevel: 2\n"


def pool(fake: FakeAccelerator) -> DevicePool:
    return DevicePool(fake, fake.devices)


def test_groups_have_disjoint_ports_which_come_back_with_the_lease() -> None:
    pooled = pool(FakeAccelerator(8))
    leases = [pooled.lease("a", group(2)) for _ in range(3)]
    assert [lease.environment[PORTS] for lease in leases] == ["7000-7009", "7010-7019", "7020-7029"]
    assert PORTS not in pooled.lease("b", PLAIN).environment
    pooled.release(leases[1])
    assert pooled.lease("c", group(2)).environment[PORTS] == "7010-7019"


def test_ports_of_other_processes_are_passed_over() -> None:
    fake = FakeAccelerator(4)
    fake.ports_in_use = {0, 1}
    assert pool(fake).lease("a", group(2)).port_block == 2


def test_a_host_without_any_port_can_never_have_the_group() -> None:
    fake = FakeAccelerator(4)
    fake.port_blocks = 0
    with pytest.raises(NoPortsError, match=r"^a needs ports for its collectives: there are ports for 0 groups$"):
        pool(fake).lease("a", group(2))


def test_without_free_ports_a_lease_takes_nothing() -> None:
    fake = FakeAccelerator(4)
    fake.port_blocks, fake.ports_in_use = 1, {0}
    pooled = pool(fake)
    with pytest.raises(PortsHeldError):
        pooled.lease("a", group(2))
    fake.ports_in_use = set()
    assert pooled.lease("a", group(2)).numbers == (0, 1)


def test_a_group_without_ports_waits_until_another_gives_its_own_back(tmp_path: Path) -> None:
    fake = FakeAccelerator(4)
    fake.port_blocks = 1

    async def test(harness: Harness) -> None:
        await harness.register("first", config=TP2)
        waiting = asyncio.create_task(harness.register("second", config=TP2))
        await until(lambda: "second" in harness.registry.names() and harness.registry.find("second").status.shortage)
        shortage = harness.registry.find("second").status.shortage
        assert shortage is not None
        assert shortage == (
            "ports",
            "second:1.0 needs ports for its collectives, and all are taken: there are ports for 1 groups; "
            "it starts when some are free",
        )
        await harness.management.unregister("first", None)
        await waiting
        await until(lambda: harness.groups("second"))

    in_harness(tmp_path, test, accelerator=fake)
