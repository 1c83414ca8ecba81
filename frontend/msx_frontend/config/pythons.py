"""The interpreters among which models choose, by name: the key `pythons`."""

import re
from pathlib import Path

from msx_core.names import INTERPRETER_NAME
from msx_frontend.config.server_config import ServerConfig, ServerConfigError

MOST = 32
"""Interpreters of a server."""


def named_interpreters(config: ServerConfig) -> dict[str, Path]:
    """Absolute paths by name; links are kept, since a virtual environment is known by its own. Raises
    ServerConfigError."""
    named: dict[str, Path] = {}
    for part in config.pythons:
        name, path = _named(part)
        if name in named:
            raise ServerConfigError(f"pythons: {name!r} stands there twice")
        named[name] = path
    if len(named) > MOST:
        raise ServerConfigError(f"pythons: names {len(named)} interpreters, and at most {MOST} are allowed")
    return named


def absent_interpreters(config: ServerConfig) -> list[str]:
    """A line for the log about each that is not there: other models are served meanwhile. Raises ServerConfigError."""
    return [
        f"pythons: {name}: {path} is not an existing file: models with python: {name} cannot be served"
        for name, path in named_interpreters(config).items()
        if not path.is_file()
    ]


def _named(part: str) -> tuple[str, Path]:
    name, _, path = (text.strip() for text in part.partition("="))
    if not re.match(INTERPRETER_NAME, name) or not path:
        raise ServerConfigError(
            f"pythons: {part!r} is not a named interpreter: write NAME=/path/to/bin/python, with a name of at most 64 "
            "letters, digits, '_', '-' and '.'"
        )
    return name, Path(path).absolute()
