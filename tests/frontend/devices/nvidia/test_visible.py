"""The list of visible devices is read as CUDA reads it."""

from __future__ import annotations

import pytest

from msx_frontend.devices.nvidia.messages import Gpu, Inventory, MigInstance, UnreadableGpu
from msx_frontend.devices.nvidia.visible import entries, order_is_unknown, visible_ids

FIRST, SECOND, THIRD = "GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333"
MIG = ("MIG-11", "MIG-12")
INVENTORY = Inventory(
    "550",
    12040,
    (
        Gpu(0, FIRST, "H100"),
        Gpu(1, SECOND, "H100"),
        Gpu(3, THIRD, "A100", instances=(MigInstance(MIG[0], "1g", 7, 0), MigInstance(MIG[1], "1g", 8, 0))),
    ),
    (UnreadableGpu(2, "Unknown Error"),),
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0", [FIRST]),
        ("1,0", [SECOND, FIRST]),
        (" 1, 0", [SECOND, FIRST]),
        ("+1,00", [SECOND, FIRST]),
        ("1x,0", [SECOND, FIRST]),
        ("0,2,1", [FIRST, SECOND]),
        ("2", []),
        ("3", [*MIG]),
        ("0,4,1", [FIRST]),
        ("0,-1,1", [FIRST]),
        ("-1", []),
        ("", []),
        ("none", []),
        ("0,,1", [FIRST]),
        ("0,1,0", []),
        ("0,99999999999999999999", [FIRST]),
        (f"0,{FIRST}", [FIRST]),
        (FIRST, [FIRST]),
        ("GPU-aaaa2,GPU-aaaa1", [SECOND, FIRST]),
        ("GPU-aaaa", []),
        ("GPU-aaaa1,GPU-cc,GPU-aaaa2", [FIRST]),
        ("GPU-aaaa1,1", [FIRST]),
        ("GPU-aaaa1, GPU-aaaa2", [FIRST]),
        ("GPU-aaaa1,GPU-aaaa11", []),
        ("GPU-b", [*MIG]),
        (f"{MIG[1]},{MIG[0]}", [MIG[1], MIG[0]]),
        ("MIG-1", []),
        (f"MIG-{THIRD}/8/0", [MIG[1]]),
        (f"MIG-{THIRD}/9/0", []),
        (f"{MIG[1]},MIG-{THIRD}/8/0", []),
        (f"{MIG[0]},GPU-aaaa1", [MIG[0]]),
    ],
)
def test_the_devices_that_a_list_leaves(text: str, ids: list[str]) -> None:
    assert visible_ids(text, INVENTORY) == ids


def test_a_list_without_a_valid_entry_is_known_without_a_machine() -> None:
    assert [text for text in ("", "-1", "x", "0,0", ",0", "GPU-é") if entries(text)] == []
    assert entries("3,GPU-aaaa1") == ["3"]


@pytest.mark.parametrize(
    ("text", "order", "unknown"),
    [
        ("1", "", True),
        ("1", "FASTEST_FIRST", True),
        ("1", "PCI_BUS_ID", False),
        ("GPU-aaaa1", "", False),
        (MIG[0], "", False),
    ],
)
def test_only_cuda_knows_the_order_of_cards_that_differ(text: str, order: str, unknown: bool) -> None:
    assert order_is_unknown(text, order, INVENTORY.gpus) is unknown
    assert not order_is_unknown(text, order, INVENTORY.gpus[:2]), "cards that are alike"
