"""A package with entry points, as pip would have installed it."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, group: str, *points: str, **modules: str) -> None:
    """`points` are lines such as `name = module:attribute`, `modules` their code. `folder` goes on the path."""
    info = folder / "acme_serving-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-serving\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *points]))
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
