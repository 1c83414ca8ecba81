"""Runs the checks of clients of npm, which are written in JavaScript, and the programs that npm installs.

`npm/NAME.json` is the package.json of an environment, which is made once in `.npm-NAME`; the package `node` among its
dependencies brings the version of Node that its clients need. A file of checks is `clients/NAME.mjs`: each function
that it exports by a name with `check_` is one, and fails by throwing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.contract.runs import CLIENTS, HERE, ROOT, WATCHDOG, addresses_and_keys
from tests.e2e.server import RunningServer

CHECK = re.compile(r"^export (?:async )?function (check_\w+)", re.MULTILINE)
RUNNER = ("run.mjs", "server.mjs")


def checks_of(name: str, folder: Path = CLIENTS) -> list[tuple[str, str]]:
    return [(name, check) for check in CHECK.findall((folder / f"{name}.mjs").read_text())]


def make_packages(name: str) -> Path:
    """Folder of the environment with `npm/NAME.json`, installed where it is missing or has changed."""
    wanted, folder = HERE / "npm" / f"{name}.json", ROOT / f".npm-{name}"
    stamp = folder / ".installed"
    with wanted.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != wanted.read_bytes():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            shutil.copy(wanted, folder / "package.json")
            _install(folder)
            shutil.copy(wanted, stamp)
    return folder


def program(packages: Path, name: str) -> str:
    """Path of a program that npm installed, as `node` is."""
    return str(packages / "node_modules" / ".bin" / name)


def environment(packages: Path) -> dict[str, str]:
    """Variables under which programs of npm find the environment's own Node."""
    return {**os.environ, "PATH": f"{packages / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"}


def run_npm(
    names: Sequence[str], server: RunningServer, packages: Path, folder: Path = CLIENTS
) -> dict[str, dict[str, str]]:
    """Outcome of each check of the files, "" where it passed."""
    # A module finds packages from its own place upwards.
    for file in {*(CLIENTS / name for name in RUNNER), *folder.glob("*.mjs")}:
        shutil.copy(file, packages)
    command = [program(packages, "node"), str(packages / "run.mjs"), ",".join(names), *addresses_and_keys(server)]
    done = subprocess.run(command, env=environment(packages), capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


def _install(folder: Path) -> None:
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, f"{folder.name} could not be installed:\n{made.stderr}"
