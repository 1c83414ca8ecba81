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

import yaml

from msx_frontend.start_errors import StartError

_EXTRAS = ("request_id", "model", "version", "rank", "stream")


class LogConfigError(StartError):
    """The file given with --log-config cannot be used."""


@dataclass(frozen=True)
class LogOutput:
    """Where whole lines of the access log go; to `logger` when the user configured the logging."""

    write: Callable[[str], object]
    as_json: bool
    logger: logging.Logger | None = None


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


def set_up_logging(log_config: Path | None, stream: TextIO = sys.stdout) -> LogOutput:
    """Raises LogConfigError. `log_config` is a logging.config dictionary in YAML or JSON, or an ini file."""
    human = stream.isatty()
    if log_config is not None:
        _apply(log_config)
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(HumanFormatter() if human else JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    return LogOutput(write, not human, logging.getLogger("msx.access") if log_config else None)


def _origin(record: logging.LogRecord) -> str:
    if hasattr(record, "model"):
        return f"{record.model} {getattr(record, 'version', '')} rank {getattr(record, 'rank', 0)}"
    return record.name


def _apply(path: Path) -> None:
    try:
        if path.suffix in (".ini", ".conf", ".cfg"):
            logging.config.fileConfig(path, disable_existing_loggers=False)
        else:
            config = {"disable_existing_loggers": False, **yaml.safe_load(path.read_text())}
            logging.config.dictConfig(config)
    except FileNotFoundError:
        raise LogConfigError(f"--log-config file not found: {path}") from None
    except Exception as error:
        raise LogConfigError(
            f"--log-config {path} is no logging configuration (a logging.config dictionary in YAML or JSON, or an "
            f"ini file): {error}"
        ) from None
