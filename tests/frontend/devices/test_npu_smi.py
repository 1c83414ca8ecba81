from pathlib import Path

import pytest

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.devices.npu_smi import ChipKey, parse_mapping, parse_table

DATA = Path(__file__).parent / "data" / "npu_smi"


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("sample", "chips", "name", "first", "last"),
    [
        ("910b", 8, "Ascend 910B3", ChipKey(0, 0), ChipKey(7, 0)),
        ("910c", 8, "Ascend910", ChipKey(0, 0), ChipKey(3, 1)),
        ("310p", 2, "Ascend 310P3", ChipKey(1, 0), ChipKey(1, 1)),
    ],
)
def test_mapping(sample: str, chips: int, name: str, first: ChipKey, last: ChipKey) -> None:
    mapping = parse_mapping(read(f"{sample}_mapping"))
    assert [found.logic for found in mapping.values()] == list(range(chips))
    assert {found.name for found in mapping.values()} == {name}
    assert (next(iter(mapping)), list(mapping)[-1]) == (first, last)


@pytest.mark.parametrize("sample", ["910b", "910c", "310p"])
def test_table_and_mapping_name_the_same_chips(sample: str) -> None:
    assert parse_table(read(f"{sample}_info")).keys() == parse_mapping(read(f"{sample}_mapping")).keys()


def test_physical_ids_where_the_tool_shows_them() -> None:
    assert parse_mapping(read("910c_mapping"))[ChipKey(3, 1)].phy == 7
    assert parse_mapping(read("910b_mapping"))[ChipKey(3, 0)].phy is None


def test_a_mapping_without_logic_ids_numbers_by_npu() -> None:
    text = "\tNPU ID     Slot ID    Chip ID    Chip Phy-ID   Chip Name\n\t5    2    0    13    Ascend950DT\n"
    assert parse_mapping(text) == {ChipKey(5, 0): (5, "Ascend950DT", 13)}


def test_table() -> None:
    table = parse_table(read("910b_info"))
    status = DeviceStatus("OK", True, 87, 3328, 65536, temperature=44, processes={31337: 29110})
    assert table[ChipKey(1, 0)] == ("910B3", "0000:C1:00.0", status)
    assert table[ChipKey(5, 0)].status.health == "Warning"
    idle = DeviceStatus("OK", True, 12, 2895, 65536, temperature=36, processes={})
    assert parse_table(read("910c_info"))[ChipKey(3, 1)].status == idle
    idle = DeviceStatus("OK", True, 5, 1700, 21527, temperature=40, processes={})
    assert parse_table(read("310p_info"))[ChipKey(1, 0)].status == idle


@pytest.mark.parametrize(
    ("word", "healthy"),
    [("OK", True), ("Warning", True), ("Alarm", False), ("Critical", False), ("UNKNOWN", None), ("NA", None)],
)
def test_health(word: str, healthy: bool | None) -> None:
    text = f"| 0     910B3 | {word} | NA  43  0 / 0 |\n| 0  0 | NA | NA  NA  NA |\n"
    assert parse_table(text)[ChipKey(0, 0)].status == DeviceStatus(word, healthy, temperature=43)


def test_processes_and_temperatures_that_the_tool_does_not_show() -> None:
    text = "| 0     910B3 | OK | NA  NA  0 / 0 |\n| 0  0 | NA | NA  NA  NA |\n"
    status = parse_table(text)[ChipKey(0, 0)].status
    assert (status.temperature, status.processes) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed.", "0 0 0 x"]
)
def test_without_a_table_there_are_no_chips(text: str) -> None:
    assert parse_mapping(text) == {}
    assert parse_table(text) == {}
