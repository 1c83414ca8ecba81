"""Reading `npu-smi info -t topo`: the links between chips, and the cores that are near each of them.

The first line names the columns, NPU0, NPU1, … (cards by NPU ID) or Phy-ID0, Phy-ID1, … (chips by physical id), and, on
most machines, CPU Affinity. Each further line is a row of that matrix; a legend follows. `NA` is an unknown relation.
"""

import re
from typing import NamedTuple

from msx_frontend.devices.local_cores import parse_cores

LINKS = {"SIO": 1, "HCCS": 2, "HCCS_SW": 3, "PIX": 4, "PXB": 5, "PHB": 6, "SYS": 7}
"""The tool's words, the fastest first: within a chip, HCCS, HCCS through a switch, one PCIe switch, several, the host
bridge of a CPU, and from one NUMA node to another."""

_LABEL = re.compile(r"^(NPU|Phy-ID)(\d+)$")


class Label(NamedTuple):
    """Label of a row or column: `by` is NPU or Phy-ID."""

    by: str
    number: int


class TopoRow(NamedTuple):
    links: dict[Label, int]
    """Costs, by `LINKS`; without unknown links, and without the chip itself."""
    cores: frozenset[int]
    """Empty where the tool does not show them."""


def parse_topo(text: str) -> dict[Label, TopoRow]:
    """The rows of the matrix; empty when there is none."""
    columns: list[str] = []
    rows: dict[Label, TopoRow] = {}
    for line in text.splitlines():
        words = line.split()
        if not columns and words and _label(words[0]):
            columns = words
        elif columns and words and (label := _label(words[0])):
            rows[label] = _row(columns, words[1:])
    return rows


def _row(columns: list[str], cells: list[str]) -> TopoRow:
    width = columns.index("CPU") if "CPU" in columns else len(columns)
    cells_by_label = {_label(column): cell for column, cell in zip(columns[:width], cells, strict=False)}
    links = {label: LINKS[cell] for label, cell in cells_by_label.items() if label is not None and cell in LINKS}
    return TopoRow(links, _affinity(cells[width:]) if width < len(columns) else frozenset())


def _affinity(cells: list[str]) -> frozenset[int]:
    """The first column behind the matrix: `0-23`, or `0-23, 48-71`; others may follow."""
    listed = ""
    for cell in cells:
        listed += cell
        if not cell.endswith(","):
            break
    return parse_cores(listed)


def _label(word: str) -> Label | None:
    match = _LABEL.match(word)
    return Label(match[1], int(match[2])) if match else None
