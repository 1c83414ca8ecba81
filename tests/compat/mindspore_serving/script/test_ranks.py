"""Ranks of a distributed servable, as the yaml says them."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import parse_model_config
from msx_mindspore_serving.script.servables import RanksOfServable


@pytest.mark.parametrize(
    ("size", "stages", "kind", "split"),
    [(1, 1, "", (1, 1)), (8, 1, "tp", (1, 8)), (8, 8, "pp", (8, 1)), (8, 2, "pptp", (2, 4))],
)
def test_ranks_as_the_yaml_says_them(size: int, stages: int, kind: str, split: tuple[int, int]) -> None:
    devices = tuple(reversed(range(size)))
    config, warnings = parse_model_config(ranks(size, stages, devices))
    assert not warnings
    assert (config.parallel_type, config.device_ids) == (kind, devices)
    assert (config.layout.ranks, config.layout.pipeline_stages, config.layout.tensor_parallel) == (size, *split)


def test_devices_of_the_same_number_are_those_of_several_names_of_this_machine() -> None:
    assert "deviceIds" not in ranks(2, 1, (0, 0))


def ranks(size: int, stages: int, devices: tuple[int, ...]) -> dict[str, Any]:
    return RanksOfServable(stages, (("m",),) * size, ((),) * size, devices).settings()


def test_ranks_on_several_machines() -> None:
    said = RanksOfServable(1, (("m",),) * 4, ((),) * 4, (0, 1, 0, 1), nodes=2).settings()
    config, warnings = parse_model_config(said)
    assert not warnings
    assert (config.layout.ranks, config.nodes, config.device_ids) == (4, 2, None)
