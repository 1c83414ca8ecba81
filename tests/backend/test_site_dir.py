"""Packages of one model come before the interpreter's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TELL = """
import sys
from msx_backend.site_dir import prefer_packages
import msgspec
prefer_packages({folder!r})
import colorsys, linked, msgspec
print(colorsys.__file__, linked.__file__, msgspec.__file__, sys.path.count({folder!r}))
"""


def test_before_the_interpreters_own_but_not_before_the_workers(tmp_path: Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    for file in (site / "colorsys.py", site / "msgspec.py", other / "linked.py"):
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (site / "other.pth").write_text(f"{other}\n")
    command = [sys.executable, "-c", TELL.format(folder=str(site))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stdlib, linked, own, times = done.stdout.split()
    assert stdlib == str(site / "colorsys.py")
    assert linked == str(other / "linked.py")
    assert own != str(site / "msgspec.py")
    assert times == "1"
