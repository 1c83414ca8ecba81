"""Logging: readable lines on a terminal, JSON lines otherwise; every line of a request carries its id."""

from __future__ import annotations

import json
import logging
import logging.config
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from msx_frontend.logs.log_files import add_log_files
from msx_frontend.logs.rotating import RotatingFile
from msx_frontend.start_errors import StartError
from msx_sdk.safe_yaml import read_yaml
from msx_sdk.values import ConfigError

_EXTRAS = ("request_id", "model", "version", "worker", "rank", "stream")


log = logging.getLogger("msx.config")

_NOT_FOLLOWED = (
    "--log-config {} is a configuration of log4j: its appenders, patterns, levels and file names are not followed; "
    "the log files have TorchServe's names and lines. Give a logging.config dictionary (YAML or JSON) to change them"
)


class LogConfigError(StartError):
    """The file given with --log-config cannot be used."""


@dataclass(frozen=True)
class LogOutput:
    """Where whole lines of the access log go; to `logger` when the user configured the logging."""

    write: Callable[[str], object]
    as_json: bool
    logger: logging.Logger | None = None
    access_file: RotatingFile | None = None
    """TorchServe's access_log.log."""


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update({name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).isoformat(sep=" ", timespec="milliseconds")
        text = f"{moment} [{record.levelname:<7}] {_origin(record)} - {record.getMessage()}"
        if request_id := getattr(record, "request_id", ""):
            text += f" [{request_id}]"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def set_up_logging(log_config: Path | None, stream: TextIO = sys.stdout, folder: Path | None = None) -> LogOutput:
    """Raises LogConfigError. `log_config` is a logging.config dictionary in YAML or JSON, or an ini file; one of log4j
    counts as none. `folder` is that of TorchServe's log files, which a configuration of the user's replaces."""
    human = stream.isatty()
    for_java = log_config is not None and _is_for_java(log_config)
    access_file = None
    if log_config is not None and not for_java:
        _apply(log_config)
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(HumanFormatter() if human else JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        access_file = add_log_files(folder) if folder is not None else None
    if for_java:
        log.warning("%s", _NOT_FOLLOWED.format(log_config))

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    logger = logging.getLogger("msx.access") if log_config and not for_java else None
    return LogOutput(write, not human, logger, access_file)


def _origin(record: logging.LogRecord) -> str:
    if hasattr(record, "model"):
        return f"{record.model} {getattr(record, 'version', '')} rank {getattr(record, 'rank', 0)}"
    return record.name


def _is_for_java(path: Path) -> bool:
    """By its name, as log4j tells them apart; a .yaml or .json by its first key."""
    if path.suffix in (".xml", ".properties"):
        return path.is_file()
    try:
        return path.suffix in (".yaml", ".yml", ".json", ".jsn") and "Configuration" in read_yaml(path)
    except (TypeError, ConfigError):
        return False


def _apply(path: Path) -> None:
    if not path.exists():
        raise LogConfigError(f"--log-config file not found: {path}")
    try:
        if path.suffix in (".ini", ".conf", ".cfg"):
            logging.config.fileConfig(path, disable_existing_loggers=False)
        else:
            config = {"disable_existing_loggers": False, **read_yaml(path)}
            logging.config.dictConfig(config)
    except Exception as error:
        raise LogConfigError(
            f"--log-config {path} is not a logging configuration (a logging.config dictionary in YAML or JSON, or an "
            f"ini file): {error}"
        ) from None
