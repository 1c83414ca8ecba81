"""Needs of tests of workers as another user: root, and an interpreter that others can run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UID = 61234
"""User `nobody`, on most machines."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def others_python() -> tuple[str, dict[str, str]]:
    """With the variables that it needs to find MSX; skips where other users can run none."""
    if found := _found():
        return found
    pytest.skip("other users can run no interpreter of this version that finds MSX")


@cache
def _found() -> tuple[str, dict[str, str]] | None:
    packages = [str(ROOT / part) for part in ("sdk", "archiver", "backend", "frontend", "compat")]
    packages += [path for path in sys.path if path.endswith("site-packages")]
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python, env in ((sys.executable, {}), (f"/usr/bin/{name}", {"PYTHONPATH": os.pathsep.join(packages)})):
        if _runs(python, env):
            return python, env
    return None


def _runs(python: str, env: dict[str, str]) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import msx_backend.worker"],
            env={**os.environ, **env},
            user=UID,
            group=UID,
            extra_groups=[],
            capture_output=True,
        )
    except OSError:
        return False
    return done.returncode == 0


@contextmanager
def open_folder() -> Iterator[Path]:
    """Others can pass through it, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="msx-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
