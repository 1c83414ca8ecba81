"""Installs plugins as pip would, without pip: modules, and a dist-info folder with their entry points."""

from __future__ import annotations

import re
from pathlib import Path

_GROUP = re.compile(r'\[project\.entry-points\."([\w.]+)"\]\n((?:\S+ = ".+"\n)*)')


def install(target: Path, package: Path) -> None:
    """`package` has a pyproject.toml with entry points, and one module beside it."""
    (module,) = package.glob("*.py")
    groups = _GROUP.findall((package / "pyproject.toml").read_text())
    _write(target, module.stem, module.read_text(), "\n".join(f"[{name}]\n{points}" for name, points in groups))


def install_module(target: Path, name: str, text: str, **groups: dict[str, str]) -> None:
    """One module; `endpoints={"name": "module:Class"}` are its entry points."""
    points = {group: "\n".join(f"{key} = {value}" for key, value in own.items()) for group, own in groups.items()}
    _write(target, name, text, "\n".join(f"[msx.{group}]\n{lines}" for group, lines in points.items()))


def _write(target: Path, name: str, text: str, points: str) -> None:
    info = target / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (target / f"{name}.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points.replace('"', ""))
