"""A library NVML for machines without GPUs, with the cards that a test gives it (`nvml.c`). All else is real."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml.c")
NAME = "libnvidia-ml.so.1"

Values = dict[str, object]

WHOLE: Values = {
    "rows": "0 0 0 0",
    "mig": 0,
    "corrected": 0,
    "uncorrected": 0,
    "processes": "",
    "graphics": "",
    "mps": "",
}
H100: Values = {
    **WHOLE,
    "uuid": "GPU-6b5f9d2e-41c7-5a0c-9a33-0f1e2d3c4b5a",
    "name": "NVIDIA H100 80GB HBM3",
    "bus_id": "0000:1B:00.0",
    "memory": "527 81559",
    "utilisation": "37 5",
    "temperature": 41,
}
A100: Values = {
    **WHOLE,
    "uuid": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
    "name": "NVIDIA A100-SXM4-40GB",
    "bus_id": "0000:43:00.0",
    "memory": "1105 40960",
    "utilisation": "0 0",
    "temperature": 33,
}
MIG_A100: Values = {**A100, "mig": 1, "most_instances": 7}
MIG_UUIDS = ("MIG-5c89852c-d268-56c3-87f0-a1b2c3d4e5f6", "MIG-e1f0a2b3-7d64-5c1b-9f0e-112233445566")
"""Instances that `mig_instances` makes; they tell no utilisation and no temperature, as real ones."""


def mig_instances() -> Values:
    """Two of three places are taken."""
    names = ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA A100-SXM4-40GB MIG 2g.10gb")
    places = zip((0, 2), (1, 5), MIG_UUIDS, names, ("25 20096", "12 9856"), strict=True)
    return {
        f"mig{place}.{key}": value
        for place, gi, uuid, name, memory in places
        for key, value in {"uuid": uuid, "name": name, "gi": gi, "ci": 0, "memory": memory}.items()
    }


class FakeNvml:
    """Put `environment` into a server's. A value is changed while the server runs."""

    def __init__(self, folder: Path, *cards: Values) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / NAME).write_bytes(_library())
        self._values: Values = {"count": len(cards), "driver": "550.54.15", "cuda": 12040}
        for number, card in enumerate(cards):
            self._values |= {f"gpu{number}.{key}": value for key, value in card.items()}
        self.set({})

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(self.folder)}

    def set(self, values: Values) -> None:
        """Change values; None leaves one out."""
        self._values |= values
        lines = [f"{key} {value}\n" for key, value in self._values.items() if value is not None]
        (self.folder / "new").write_text("".join(lines))
        (self.folder / "new").replace(self.folder / "values")

    @property
    def hangs(self) -> bool:
        """Whether a call has come to a value `hang.FUNCTION`."""
        return (self.folder / "hangs").exists()

    def fail(self, function: str, code: int | None = None, card: int | None = None) -> None:
        """From now on the call has this error, for one card or all; with None it has none."""
        self.set({f"fail.{function}" + ("" if card is None else f".gpu{card}"): code})


@cache
def _library() -> bytes:
    """It is compiled once a process; tests are skipped without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler makes the library NVML of tests, and there is none")
    with tempfile.TemporaryDirectory(prefix="msx-nvml-") as folder:
        library = Path(folder, NAME)
        options = ["-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, "-o", str(library), str(SOURCE), "-ldl"], check=True)
        return library.read_bytes()
