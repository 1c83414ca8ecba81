"""Logging: lines for people on a terminal, JSON lines otherwise, which carry the id of their request."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from msx_frontend.logs.configured import LogConfigError, LogDestinations, apply, is_for_java
from msx_frontend.logs.file_mode import DEFAULT
from msx_frontend.logs.log_files import add_log_files
from msx_frontend.logs.rotating import RotatingFile
from msx_frontend.logs.shown import shown, shown_lines
from msx_frontend.visible import visible

_EXTRAS = ("request_id", "trace_id", "model", "version", "worker", "rank", "host", "stream")


log = logging.getLogger("msx.config")

_NOT_FOLLOWED = (
    "--log-config {} is a configuration of log4j: its appenders, patterns, levels and file names are not followed; "
    "the log files have TorchServe's names and lines. Give a logging.config dictionary (YAML or JSON) to change them"
)


@dataclass(frozen=True)
class LogOutput:
    """Where lines of the access log are written, as JSON; `logger` gets them if the user has configured the logging."""

    write: Callable[[str], object]
    logger: logging.Logger | None = None
    access_file: RotatingFile | None = None
    """TorchServe's access_log.log."""
    places: LogDestinations | None = None
    """The destinations of the user's configuration, if there is one."""
    file_mode: int = DEFAULT
    """Mode of all log files but those of the user's configuration."""

    def files(self, background: str | None) -> list[str]:
        """The files of the log; `background` is the file of stdout and stderr, if they are redirected to one."""
        if self.places is None:
            return [background] if background else []
        own = [str(path) for path in self.places.files]
        return [*own, background] if background and self.places.console else own


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self._entry(record), default=str)

    def _entry(self, record: logging.LogRecord) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update({name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return entry


class TerminalFormatter(JsonFormatter):
    """The lines of `msx-serve logs`."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(self._entry(record))


class HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).isoformat(sep=" ", timespec="milliseconds")
        text = f"{moment} [{record.levelname:<7}] {_origin(record)} - {record.getMessage()}"
        if request_id := getattr(record, "request_id", ""):
            text += f" [{request_id}]"
        return visible(f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text)


def set_up_logging(
    log_config: Path | None, stream: TextIO = sys.stdout, folder: Path | None = None, file_mode: int = DEFAULT
) -> LogOutput:
    """`log_config` is a logging.config dictionary in YAML or JSON, or an ini file; one of log4j is ignored. `folder`
    is that of TorchServe's log files, which are written without a `log_config`.

    Raises LogConfigError.
    """
    is_terminal = stream.isatty()
    for_java = log_config is not None and is_for_java(log_config)
    access_file, places = None, None
    if log_config is not None and not for_java:
        places = apply(log_config, HumanFormatter())
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(TerminalFormatter() if is_terminal else JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        access_file = add_log_files(folder, file_mode) if folder is not None else None
    if for_java:
        log.warning("%s", _NOT_FOLLOWED.format(log_config))

    def write(lines: str) -> None:
        stream.write(shown_lines(lines) if is_terminal else lines)
        stream.flush()

    logger = logging.getLogger("msx.access") if log_config and not for_java else None
    return LogOutput(write, logger, access_file, places, file_mode)


def _origin(record: logging.LogRecord) -> str:
    if hasattr(record, "model"):
        return f"{record.model} {getattr(record, 'version', '')} rank {getattr(record, 'rank', 0)}"
    return record.name


__all__ = ["HumanFormatter", "JsonFormatter", "LogConfigError", "LogOutput", "set_up_logging"]
