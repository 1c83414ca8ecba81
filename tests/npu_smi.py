"""A tool `npu-smi` for machines without NPUs, with as many chips, and in what health, as a test says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """#!/bin/sh
case "$*" in
  info) cat {0}/info.txt;;
  "info -m") cat {0}/mapping.txt;;
  "info -t topo") cat {0}/topo.txt;;
esac
"""


class FakeNpuSmi:
    """`cores`: of each chip, what stands under CPU Affinity. Put `environment` into a server's."""

    def __init__(self, folder: Path, cores: Sequence[str]) -> None:
        self.folder, self._count = folder, len(cores)
        folder.mkdir()
        names = [f"NPU{number}" for number in range(self._count)]
        rows = [f"{name} " + " ".join("X" if name == to else "HCCS" for to in names) for name in names]
        affinity = [f"{row} {near}\n" for row, near in zip(rows, cores, strict=True)]
        (folder / "topo.txt").write_text("   ".join([*names, "CPU Affinity"]) + "\n" + "".join(affinity))
        heads = ["NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"]
        mapping = [f"\t{number}    0    {number}    Ascend 910B3\n" for number in range(self._count)]
        (folder / "mapping.txt").write_text("\t" + "    ".join(heads) + "\n" + "".join(mapping))
        self._busy = 7
        self.set_health(*["OK"] * self._count)
        tool = folder / "npu-smi"
        tool.write_text(_SCRIPT.format(folder))
        tool.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}

    def set_busy(self, percent: int) -> None:
        """Set the utilisation of the AI cores of all chips, which are healthy."""
        self._busy = percent
        self.set_health(*["OK"] * self._count)

    def set_health(self, *words: str) -> None:
        """Set the health of each chip; "" for one that the tool does not list."""
        figures = f"{self._busy} 0 / 0 3318 / 65536"
        rows = [
            f"| {number} 910B3 | {word} | 95.8 43 0 / 0 |\n| 0 | 0000:C{number}:00.0 | {figures} |\n"
            for number, word in enumerate(words)
            if word
        ]
        (self.folder / "new.txt").write_text("".join(rows))
        (self.folder / "new.txt").replace(self.folder / "info.txt")
