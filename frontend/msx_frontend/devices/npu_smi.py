"""Reading the tables of `npu-smi`, the only way to know the NPUs without starting CANN.

`npu-smi info -m` has one line per chip: NPU ID, Chip ID, Chip Logic ID, on newer tools Chip Phy-ID, Chip Name. The
logic id is what ASCEND_RT_VISIBLE_DEVICES takes; a card may have two chips (910C), and its controller ("Mcu") has none.
`npu-smi info` has two lines per chip, each of three cells, and then a table of processes.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple


class ChipKey(NamedTuple):
    """A chip as npu-smi names it: number of the card, number on the card."""

    npu: int
    chip: int


@dataclass(frozen=True)
class ChipStatus:
    """Memory in MB, utilisation of the AI cores in percent; None where the tool shows no number."""

    name: str
    health: str
    utilisation: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None


_CHIP_HEAD = re.compile(r"^(\d+)\s+(\S+)$")
_CHIP_BODY = re.compile(r"^(\d+)(?:\s+\S+)?$")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")


def parse_mapping(text: str) -> dict[ChipKey, tuple[int, str]]:
    """(logic id, name) of each chip in the output of `npu-smi info -m`; empty when there is no such table."""
    chips: dict[ChipKey, tuple[int, str]] = {}
    name_column = 0
    for line in text.splitlines():
        fields = line.split()
        if line.strip().startswith("NPU ID"):
            name_column = 4 if "Phy-ID" in line else 3
        elif name_column and len(fields) > name_column and all(f.isdigit() for f in fields[:3]):
            npu, chip, logic = map(int, fields[:3])
            chips[ChipKey(npu, chip)] = logic, " ".join(fields[name_column:])
    return chips


def parse_table(text: str) -> dict[ChipKey, ChipStatus]:
    """The state of each chip in the output of `npu-smi info`, in the tool's order."""
    chips: dict[ChipKey, ChipStatus] = {}
    head: tuple[int, str, str] | None = None
    for cells in _rows(text):
        if head is None:
            match = _CHIP_HEAD.match(cells[0])
            head = (int(match[1]), match[2], cells[1]) if match else None
        elif match := _CHIP_BODY.match(cells[0]):
            npu, name, health = head
            chips[ChipKey(npu, int(match[1]))] = _status(name, health, cells[2])
            head = None
    return chips


def _rows(text: str) -> list[list[str]]:
    lines = (line.strip() for line in text.splitlines())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if len(row) == 3]  # the table of processes has four cells


def _status(name: str, health: str, usage: str) -> ChipStatus:
    """`0  0 / 0  3318 / 65536`: AI cores, memory and, on chips that have it, HBM, which then is the memory."""
    pairs = _USAGE.findall(usage)
    used, total = map(int, pairs[-1]) if pairs else (None, None)
    cores = usage.split(maxsplit=1)[0] if usage else ""
    return ChipStatus(name, health, int(cores) if cores.isdigit() else None, used, total)
