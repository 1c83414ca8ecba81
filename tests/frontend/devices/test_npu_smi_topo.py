from pathlib import Path

import pytest

from msx_frontend.devices.npu_smi_topo import LINKS, Label, TopoRow, parse_topo

DATA = Path(__file__).parent / "data" / "npu_smi"


def npu(number: int) -> Label:
    return Label("NPU", number)


def read(name: str) -> str:
    return (DATA / f"{name}_topo.txt").read_text()


def test_links_and_cores() -> None:
    rows = parse_topo(read("910a"))
    assert list(rows) == [npu(number) for number in range(8)]
    links = rows[npu(1)].links
    assert (links[npu(0)], links[npu(5)], links[npu(7)]) == (LINKS["HCCS"], LINKS["PHB"], LINKS["SYS"])
    assert npu(1) not in links
    assert (rows[npu(0)].cores, rows[npu(7)].cores) == (frozenset(range(96)), frozenset(range(96, 192)))


def test_physical_ids_and_no_cores() -> None:
    rows = parse_topo(read("910c"))
    row = rows[Label("Phy-ID", 6)]
    assert (row.links[Label("Phy-ID", 7)], row.links[Label("Phy-ID", 0)]) == (LINKS["SIO"], LINKS["HCCS_SW"])
    assert row.cores == frozenset()


def test_columns_of_network_cards_and_behind_the_cores() -> None:
    text = (
        "  NPU0 mlx5_0 NPU3 CPU Affinity NUMA Affinity\nNPU0 X PIX SYS 0-1, 8 0\nmlx5_0 PIX X NA\nNPU3 NA SYS X 4-5 1\n"
    )
    rows = parse_topo(text)
    first, second = TopoRow({npu(3): LINKS["SYS"]}, frozenset({0, 1, 8})), TopoRow({}, frozenset({4, 5}))
    assert rows == {npu(0): first, npu(3): second}


@pytest.mark.parametrize("text", ["", "dcmi module initialize failed.", "Legend:\n\n  X = Self\n  HCCS = fast\n"])
def test_without_a_matrix_there_are_no_rows(text: str) -> None:
    assert parse_topo(text) == {}
