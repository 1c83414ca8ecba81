from pathlib import Path

import pytest

from msx_frontend.devices.npu_smi import ChipKey, ChipStatus, parse_mapping, parse_table

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
    assert [logic for logic, _ in mapping.values()] == list(range(chips))
    assert {found for _, found in mapping.values()} == {name}
    assert (next(iter(mapping)), list(mapping)[-1]) == (first, last)


@pytest.mark.parametrize("sample", ["910b", "910c", "310p"])
def test_table_and_mapping_name_the_same_chips(sample: str) -> None:
    assert parse_table(read(f"{sample}_info")).keys() == parse_mapping(read(f"{sample}_mapping")).keys()


def test_table() -> None:
    table = parse_table(read("910b_info"))
    assert table[ChipKey(1, 0)] == ChipStatus("910B3", "OK", 87, 3328, 65536)
    assert table[ChipKey(5, 0)].health == "Warning"
    assert parse_table(read("910c_info"))[ChipKey(3, 1)] == ChipStatus("Ascend910", "OK", 12, 2895, 65536)
    assert parse_table(read("310p_info"))[ChipKey(1, 0)] == ChipStatus("310P3", "OK", 5, 1700, 21527)


def test_a_figure_that_is_missing_is_none() -> None:
    text = "| 0     910B3 | OK | NA  43  0 / 0 |\n| 0  0 | NA | NA  NA  NA |\n"
    assert parse_table(text) == {ChipKey(0, 0): ChipStatus("910B3", "OK")}


@pytest.mark.parametrize(
    "text", ["", "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed.", "0 0 0 x"]
)
def test_no_table_is_no_chips(text: str) -> None:
    assert parse_mapping(text) == {}
    assert parse_table(text) == {}
