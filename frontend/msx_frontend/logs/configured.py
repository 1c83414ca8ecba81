"""The user's logging configuration: a logging.config dictionary in YAML or JSON, or an ini file."""

from __future__ import annotations

import logging
import logging.config
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msx_core.safe_yaml import read_yaml
from msx_core.start_errors import StartError
from msx_core.values import ConfigError

_WANTED = "a logging.config dictionary in YAML or JSON, or an ini file"


class LogConfigError(StartError):
    """The file given with --log-config cannot be used."""


def is_for_java(path: Path) -> bool:
    """Whether it is a configuration of log4j: by the suffix, for .yaml and .json by the first key."""
    if path.suffix in (".xml", ".properties"):
        return path.is_file()
    try:
        return path.suffix in (".yaml", ".yml", ".json", ".jsn") and "Configuration" in read_yaml(path)
    except (TypeError, ConfigError):
        return False


class LogDestinations(NamedTuple):
    """Where the log is written: files, and whether also to stdout or stderr."""

    files: tuple[Path, ...] = ()
    console: bool = False


def apply(path: Path, default: logging.Formatter) -> LogDestinations:
    """Apply the configuration; returns the destinations. Handlers without a formatter get `default`, because
    Python's has no time.

    Raises LogConfigError.
    """
    with _errors_named(path):
        _configure(path)
    handlers = list(_line_handlers())
    for handler in handlers:
        if handler.formatter is None:
            handler.setFormatter(default)
    files = (Path(handler.baseFilename) for handler in handlers if isinstance(handler, logging.FileHandler))
    return LogDestinations(
        files=tuple(dict.fromkeys(path for path in files if path != Path(os.devnull))),
        console=any(handler.stream in (sys.stdout, sys.stderr) for handler in handlers),
    )


def check_log_config(path: Path) -> None:
    """Read the configuration without applying it, which opens its files. Raises LogConfigError."""
    if not is_for_java(path):
        with _errors_named(path):
            _read(path)


def _configure(path: Path) -> None:
    config = _read(path)
    if config is None:
        return logging.config.fileConfig(path, disable_existing_loggers=False)
    return logging.config.dictConfig({"disable_existing_loggers": False, **config})


def _read(path: Path) -> dict[str, Any] | None:
    """The dictionary; None for an ini file, which Python reads itself."""
    if path.suffix in (".ini", ".conf", ".cfg"):
        if not path.read_text().strip():
            raise LogConfigError(_empty(path))
        return None
    config = read_yaml(path)
    if not config and not isinstance(config, list):
        raise LogConfigError(_empty(path))
    if not isinstance(config, dict):
        raise ValueError("it has no keys")
    return config


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    if not path.exists():
        raise LogConfigError(f"--log-config file not found: {path}")
    try:
        yield
    except LogConfigError:
        raise
    except Exception as error:
        raise LogConfigError(f"--log-config {path} is not a logging configuration ({_WANTED}): {error}") from None


def _empty(path: Path) -> str:
    return (
        f"--log-config {path} is empty: give it {_WANTED}, such as the one in docs/logs.md, or leave --log-config "
        "(and log_config in config.properties) out for the default log"
    )


def _line_handlers() -> Iterator[logging.StreamHandler[Any]]:
    """The handlers of all loggers that write lines; handlers that forward or send records have formats of their own."""
    loggers = [logging.root, *logging.Logger.manager.loggerDict.values()]
    for logger in loggers:
        for handler in getattr(logger, "handlers", []):
            if isinstance(handler, logging.StreamHandler):
                yield handler
