"""Interpreters beside the server's own."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path
from typing import Any

from msx_core.interpreter_probe import MARK
from msx_frontend.environments.interpreter import own

TOLD: dict[str, Any] = {
    "version": sys.version,
    "site_dirs": [],
    "packages": {"msx-serve": "0.2", "torch": "2.13.0"},
    "protocol": 1,
    "file": "/none/msx_protocol/__init__.py",
    "problem": "",
}
"""Answer of an interpreter that can run workers."""


def new_interpreter(folder: Path, *, with_msx: bool = True) -> Path:
    """A virtual environment; MSX is there as if it had been installed."""
    venv.create(folder, symlinks=True, with_pip=False)
    if with_msx:
        lines = [f"import site; site.addsitedir({path!r})" for path in own().site_dirs]
        (site_packages(folder) / "msx.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    (found,) = folder.glob("lib/python*/site-packages")
    return found


def install_package(site: Path, name: str, version: str) -> None:
    """Metadata alone."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def install_other_msx(site: Path, version: str, *, protocol: int | None, worker: str = "") -> None:
    """MSX of another version: `protocol` is None where it has no number, `worker` is the text of its module."""
    install_package(site, "msx-serve", version)
    for package, file, text in (
        ("msx_protocol", "version.py", ""),
        ("msx_backend", "worker.py", worker),
    ):
        (site / package).mkdir()
        (site / package / "__init__.py").touch()
        (site / package / file).write_text(text)
    if protocol is not None:
        (site / "msx_protocol" / "__init__.py").write_text(f"PROTOCOL_VERSION = {protocol}\n")


def stub_interpreter(path: Path, script: str = "", **told: Any) -> Path:
    """A shell script that writes what an interpreter says of itself, and counts its runs in the file beside it."""
    line = MARK + json.dumps({**TOLD, **told})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho run >> {path}.runs\n{script or f'cat {path}.told'}\n")
    (path.parent / f"{path.name}.told").write_text(f"a warning\n{line}\nanother one\n")
    path.chmod(0o755)
    return path


def runs(path: Path) -> int:
    file = path.parent / f"{path.name}.runs"
    return len(file.read_text().splitlines()) if file.exists() else 0
