"""Devices of groups that have outlived a frontend."""

from __future__ import annotations

import json

from msx_core.config import ModelConfig, parse_model_config
from msx_frontend.devices.kept_leases import KeptLease, note_of
from tests.frontend.devices.fake_accelerator import npu_pool

GROUP = parse_model_config({"parallelType": "custom", "parallelLevel": 2})[0]


def test_a_group_gets_its_devices_and_ports_again() -> None:
    before = npu_pool(6)
    before.lease("a", GROUP)
    lease = before.lease("b", GROUP)
    kept = KeptLease.parse(json.loads(json.dumps(note_of(lease))))
    again = npu_pool(6, kept=[kept]).lease("b", GROUP)
    assert again.numbers == lease.numbers
    assert (again.port_block, again.environment) == (lease.port_block, lease.environment)


def test_other_models_and_later_groups_get_what_is_free() -> None:
    kept = KeptLease.parse(note_of(npu_pool(6).lease("b", GROUP)))
    pool = npu_pool(6, kept=[kept])
    assert pool.lease("b", ModelConfig()).numbers == (0,)
    assert pool.lease("b", GROUP).numbers == (0, 1)
    assert pool.lease("b", GROUP).numbers == (2, 3)
