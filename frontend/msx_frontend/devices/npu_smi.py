"""Reading the tables of `npu-smi`, the only way to know the NPUs without starting CANN.

`npu-smi info -m` has one line per chip: NPU ID, Chip ID, Chip Logic ID, on newer tools Chip Phy-ID, Chip Name. The
logic id is what CANN takes; a card may have two chips (910C), and its controller ("Mcu") has none. Tools that give no
logic ids number the chips by NPU ID. `npu-smi info` has two lines per chip, each of three cells, and then a table of
processes, each a line of four cells.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from msx_frontend.devices.accelerator import DeviceStatus

# Where the driver's package puts the tool; services often have a short PATH.
_FOLDERS = ("/usr/local/bin", "/usr/local/sbin")

_HEALTHY = {"ok": True, "warning": True, "alarm": False, "critical": False, "offline": False}
"""As the vendor's own device plugin judges: a general alarm (Warning) does not stop a chip from computing."""

UNKNOWN = "unknown"
"""Health, in lower case, of a chip that does not run, or in a container in which the tool never shows more."""


class ChipKey(NamedTuple):
    """A chip as npu-smi names it: number of the card, number on the card."""

    npu: int
    chip: int


class Chip(NamedTuple):
    """A line of `npu-smi info -m`."""

    logic: int
    name: str
    phy: int | None = None
    """Physical id; None where the tool does not show it."""


class ChipRow(NamedTuple):
    """Row of a chip in `npu-smi info`."""

    name: str
    bus_id: str
    """PCI address, such as 0000:C1:00.0."""
    status: DeviceStatus


_CHIP_HEAD = re.compile(r"^(\d+)\s+(\S+)$")
_CHIP_BODY = re.compile(r"^(\d+)(?:\s+\S+)?$")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")
_CHIP = re.compile(r"^(\d+)\s+(\d+)$")
_PROCESSES = "Process id"
"""A heading of the table of processes, which old tools do not print."""


class NpuSmi:
    """The tool on this machine. `timeout`: seconds for each call."""

    def __init__(self, env: Mapping[str, str], timeout: float) -> None:
        self._env, self._timeout = dict(env), timeout

    def read(self, *arguments: str) -> str:
        """Its output; "" where there is no tool, and where it fails, as inside containers without the driver."""
        tool = shutil.which("npu-smi", path=os.pathsep.join([self._env.get("PATH", os.defpath), *_FOLDERS]))
        if tool is None:
            return ""
        try:
            done = subprocess.run(
                [tool, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout,
                env=self._env,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""


def parse_mapping(text: str) -> dict[ChipKey, Chip]:
    """The chips in the output of `npu-smi info -m`; empty when there is no such table."""
    chips: dict[ChipKey, Chip] = {}
    headings: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("NPU ID"):
            headings = re.split(r"\s{2,}|\t", line.strip())
        elif headings and (chip := _mapped(headings, line)):
            chips[chip[0]] = chip[1]
    return chips


def _mapped(headings: list[str], line: str) -> tuple[ChipKey, Chip] | None:
    cells = dict(zip(headings, line.split(maxsplit=len(headings) - 1), strict=False))
    ids = [cells.get(name, "") for name in ("NPU ID", "Chip ID")]
    logic, phy = cells.get("Chip Logic ID", ids[0]), cells.get("Chip Phy-ID", "")
    if not all(text.isdecimal() for text in (*ids, logic)):
        return None  # the card's controller, or not a line of the table
    name = cells.get("Chip Name", "").strip()
    return ChipKey(int(ids[0]), int(ids[1])), Chip(int(logic), name, int(phy) if phy.isdecimal() else None)


def parse_table(text: str) -> dict[ChipKey, ChipRow]:
    """The state of each chip in the output of `npu-smi info`, in the tool's order."""
    chips: dict[ChipKey, ChipRow] = {}
    head: tuple[int, str, str, str] | None = None
    for cells in _rows(text, 3):
        if head is None:
            match = _CHIP_HEAD.match(cells[0])
            head = (int(match[1]), match[2], cells[1], cells[2]) if match else None
        elif match := _CHIP_BODY.match(cells[0]):
            npu, name, health, power = head
            chips[ChipKey(npu, int(match[1]))] = ChipRow(name, cells[1], _status(health, power, cells[2]))
            head = None
    return _with_processes(chips, text) if _PROCESSES in text else chips


def _with_processes(chips: dict[ChipKey, ChipRow], text: str) -> dict[ChipKey, ChipRow]:
    found = _processes(text)
    statuses = {key: replace(row.status, processes=found.get(key, {})) for key, row in chips.items()}
    return {key: row._replace(status=statuses[key]) for key, row in chips.items()}


def _processes(text: str) -> dict[ChipKey, dict[int, int]]:
    """Memory in MB of the processes on each chip, by process id; without idle chips."""
    chips: dict[ChipKey, dict[int, int]] = {}
    for chip, pid, _, memory in _rows(text, 4):
        if (match := _CHIP.match(chip)) and pid.isdecimal() and memory.isdecimal():
            chips.setdefault(ChipKey(int(match[1]), int(match[2])), {})[int(pid)] = int(memory)
    return chips


def _rows(text: str, cells: int) -> list[list[str]]:
    """Rows with so many cells."""
    lines = (line.strip() for line in text.splitlines())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if len(row) == cells]


def _status(health: str, power: str, usage: str) -> DeviceStatus:
    """`power` is `95.8  43  0 / 0`: watts, °C and huge pages. `usage` is `0  0 / 0  3318 / 65536`: AI cores, memory
    and, on chips that have it, HBM, which then is the memory."""
    pairs = _USAGE.findall(usage)
    used, total = map(int, pairs[-1]) if pairs else (None, None)
    cores = usage.split(maxsplit=1)[0] if usage else ""
    temperature = next(iter(power.split()[1:]), "")
    return DeviceStatus(
        health=health,
        healthy=_HEALTHY.get(health.lower()),
        utilisation=int(cores) if cores.isdigit() else None,
        memory_used=used,
        memory_total=total,
        temperature=int(temperature) if temperature.isdecimal() else None,
    )
