"""`msx-serve --script FILE`: a start script of MindSpore Serving, which starts its server by itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from msx_frontend.cli.options import Options
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import FLAGS

FLAGS_BEFORE = ("ts_config", "log_config", "plugins_path", "state_dir")
"""Flags that say something to that server."""


def run_script(options: Options, script: Path, arguments: Sequence[str]) -> int:
    """Becomes the script, in this process; returns the exit code if that is not possible."""
    if not script.is_file():
        click.echo(f"--script file not found: {script}", err=True)
        return 1
    environment = {**options.env, FLAGS: json.dumps(_server_flags(options)), "PYTHONPATH": _path(options)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, str(script), *arguments], environment)  # noqa: S606
    return 0


def _server_flags(options: Options) -> list[str]:
    flags: list[str] = []
    for name in FLAGS_BEFORE:
        if (value := getattr(options, name)) is not None:
            text = os.path.abspath(value) if isinstance(value, Path) else str(value)
            flags += [f"--{name.replace('_', '-')}", text]
    return flags


def _path(options: Options) -> str:
    """Our `mindspore_serving` comes before one that is installed."""
    from msx_mindspore_serving import packages

    return os.pathsep.join(filter(None, [os.path.dirname(packages.__file__), options.env.get("PYTHONPATH", "")]))
