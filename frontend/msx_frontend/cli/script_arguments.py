"""Arguments of msx-serve that are a start script's. Every command imports this: nothing that is slow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msx_frontend.cli.options import Options

FLAGS_BEFORE = ("ts_config", "log_config", "plugins_path", "state_dir")
"""Flags that may stand before `--script`: they are for the server that the script starts."""


def divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of msx-serve up to the file of `--script`, and those of the script, as Python divides its own."""
    for at, argument in enumerate(arguments):
        if argument == "--script":
            return list(arguments[: at + 2]), list(arguments[at + 2 :])
        if argument.startswith("--script="):
            return list(arguments[: at + 1]), list(arguments[at + 1 :])
    return list(arguments), []


def server_flags(options: Options) -> list[str]:
    """The flags of FLAGS_BEFORE that were given, with absolute paths."""
    flags: list[str] = []
    for name in FLAGS_BEFORE:
        if (value := getattr(options, name)) is not None:
            text = os.path.abspath(value) if isinstance(value, Path) else str(value)
            flags += [f"--{name.replace('_', '-')}", text]
    return flags
