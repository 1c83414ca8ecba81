"""The interpreter of workers: the server's own, or the one of the key `python`."""

import json
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msx_core.start_errors import StartError
from msx_frontend.worker_modules import WORKER

_LIMIT = 60.0
_TELL = f"""
import json, site, sys
import {WORKER}
print(json.dumps([sys.version, site.getsitepackages()]))
"""


class PythonError(StartError):
    """The interpreter of the key `python` cannot run workers."""


@dataclass(frozen=True)
class Interpreter:
    """`version` is all of `sys.version`; `site_dirs` are its site-packages."""

    path: str
    version: str
    site_dirs: tuple[str, ...]


def own() -> Interpreter:
    return Interpreter(sys.executable, sys.version, tuple(site.getsitepackages()))


def find_interpreter(path: Path | None, env: Mapping[str, str]) -> Interpreter:
    """Start the interpreter to read its version. Blocks as long as a start of Python. Raises PythonError."""
    if path is None:
        return own()
    command = [str(path.absolute()), "-c", _TELL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=dict(env), timeout=_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PythonError(f"python: {path} cannot be run: {error}") from None
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"it exited with code {done.returncode}"])[-1]
        raise PythonError(f"python: {path} cannot run workers: {why}. Install msx-serve in its environment.")
    version, site_dirs = json.loads(done.stdout.splitlines()[-1])
    return Interpreter(command[0], version, tuple(site_dirs))
