"""Packages of other products, each set in a virtual environment of its own in the user's cache folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import platformdirs

LIMIT = 900.0
"""Seconds for an installation."""


class NotInstalled(Exception):
    """A peer cannot be installed here; the message says why."""


def install(name: str, versions: dict[str, str]) -> Path:
    """The Python that has these packages. Raises NotInstalled."""
    label = "-".join([name, versions[name], str(sys.version_info.minor)])
    folder = Path(platformdirs.user_cache_dir("msx-benchmarks")) / label
    python = folder / "bin" / "python"
    if not _has(python, versions):
        packages = [f"{package}=={version}" for package, version in versions.items()]
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], name, folder)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *packages], name, folder)
    return python


def _has(python: Path, versions: dict[str, str]) -> bool:
    """A local version, such as torch's 2.13.0+cpu, counts as equal."""
    if not python.exists():
        return False
    checks = "; ".join(f"assert m.version({name!r}).partition('+')[0] == {it!r}" for name, it in versions.items())
    check = f"import importlib.metadata as m; {checks}"
    return subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0


def _run(command: Sequence[str], name: str, folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise NotInstalled(f"{name} could not be installed into {folder} ({reason}).")
