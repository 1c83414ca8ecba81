"""Runs the checks of real clients in the clients' own environment."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.server import RunningServer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLIENTS = HERE / "clients"
WATCHDOG = 300


def checks_of(name: str, folder: Path = CLIENTS) -> list[tuple[str, str]]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((folder / f"{name}.py").read_text())
    return [(name, node.name) for node in tree.body if isinstance(node, functions) and node.name.startswith("check_")]


def make_environment(requirements: Path = HERE / "requirements.txt", venv: Path = ROOT / ".venv-clients") -> str:
    """Its Python. It is made where it is missing."""
    with requirements.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            [str(HERE / "make_venv"), str(requirements), str(venv)],
            env={**os.environ, "PYTHON": sys.executable},
            capture_output=True,
        )
    assert made.returncode == 0, f"{requirements.name} could not be installed:\n{made.stderr.decode()}"
    return made.stdout.decode().strip()


def run(
    name: str, server: RunningServer, python: str, folder: Path = CLIENTS, packages: Path = CLIENTS
) -> dict[str, str]:
    """Outcome of each check of the file in `folder`, which may import what is in `packages`."""
    return run_all([name], server, python, folder, packages)[name]


def run_all(
    names: Sequence[str], server: RunningServer, python: str, folder: Path = CLIENTS, packages: Path = CLIENTS
) -> dict[str, dict[str, str]]:
    """The same of several files, in one process: clients take seconds to be imported."""
    command = [python, str(CLIENTS / "run.py"), os.pathsep.join(str(folder / f"{name}.py") for name in names)]
    command += addresses_and_keys(server)
    paths = {"PYTHONPATH": os.pathsep.join((str(CLIENTS), str(packages)))}
    done = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


def addresses_and_keys(server: RunningServer) -> list[str]:
    """Arguments of the files that run checks, behind the first."""
    assert server.keys is not None
    keys = [server.keys[kind]["key"] for kind in ("inference", "management")]
    return [server.info["inference"], server.info["management"], *keys, server.info["grpc_inference"]]
