"""Tiny packages, for a pip without a network."""

from __future__ import annotations

import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str = "1.0", code: str = "", requires: tuple[str, ...] = ()) -> Path:
    """`name-version-py3-none-any.whl` with one module `name`, which has `VERSION` and what `code` adds."""
    info = f"{name}-{version}.dist-info"
    metadata = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{name}.py": f"VERSION = {version!r}\n{code}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel


def make_slow_source(folder: Path, name: str, started: Path, gate: Path) -> Path:
    """A source package whose build makes the file `started`, and waits until `gate` is there."""
    root = folder / name
    root.mkdir()
    (root / "pyproject.toml").write_text(
        f'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        f'[project]\nname = "{name}"\nversion = "1.0"\n'
    )
    (root / "backend.py").write_text(
        "import pathlib, time\n"
        f"pathlib.Path({str(started)!r}).touch()\n"
        "print('waiting at the gate')\n"
        f"while not pathlib.Path({str(gate)!r}).exists():\n"
        "    time.sleep(0.01)\n"
        "raise SystemExit('the gate is open, and there is nothing behind it')\n"
    )
    return root


def pip_environment(wheels: Path) -> dict[str, str]:
    """pip takes what is in `wheels`, and asks no index."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1"}
