"""`msx-serve --script FILE`: a start script of MindSpore Serving, which starts its server by itself."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from msx_mindspore_serving import packages
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import FLAGS


def run_script(script: Path, arguments: Sequence[str], flags: Sequence[str], env: Mapping[str, str]) -> int:
    """Become the script, in this process; return the exit code if that is not possible. `flags` are the server's."""
    if not script.is_file():
        click.echo(f"--script file not found: {script}", err=True)
        return 1
    environment = {**env, FLAGS: json.dumps(flags), "PYTHONPATH": _path(env)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, str(script), *arguments], environment)  # noqa: S606
    return 0


def _path(env: Mapping[str, str]) -> str:
    """Our `mindspore_serving` comes before one that is installed."""
    return os.pathsep.join(filter(None, [os.path.dirname(packages.__file__), env.get("PYTHONPATH", "")]))
