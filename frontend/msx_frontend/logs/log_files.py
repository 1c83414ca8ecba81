"""TorchServe's log files: access_log.log, ts_log.log and model_log.log, with lines in its format."""

import logging
from pathlib import Path

from msx_frontend.logs.log4j_time import log4j_time
from msx_frontend.logs.rotating import RotatingFile
from msx_frontend.visible import visible

MODEL = "msx.model"

_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class Log4jFormatter(logging.Formatter):
    """`2026-11-20T18:22:29,700 [INFO ] W-9000-m_1.0-stdout MODEL_LOG - text`: TorchServe's pattern."""

    def format(self, record: logging.LogRecord) -> str:
        level = _LEVELS.get(record.levelname, record.levelname)
        text = f"{log4j_time(record.created)} [{level:<5}] {_thread(record)} {_logger(record)} - {record.getMessage()}"
        return visible(f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text)


def add_log_files(folder: Path, file_mode: int) -> RotatingFile:
    """Add the files to the root logger; returns that of the access log, which takes whole lines. All files exist
    from now on."""
    root = logging.getLogger()
    access = RotatingFile(folder / "access_log.log", file_mode=file_mode)
    for name, of_models in (("ts_log.log", False), ("model_log.log", True)):
        handler = RotatingFile(folder / name, file_mode=file_mode)
        handler.setFormatter(Log4jFormatter())
        handler.addFilter(lambda record, of_models=of_models: (record.name == MODEL) is of_models)  # type: ignore[misc]
        root.addHandler(handler)
        handler.create()
    access.create()
    return access


def _thread(record: logging.LogRecord) -> str:
    """The name of the thread. A worker, and each of its streams, counts as a thread, as in TorchServe."""
    labels = {"version": "", "stream": "stdout", **record.__dict__}
    if not {"worker", "model"} <= labels.keys():
        return record.threadName or "main"
    pattern = "W-{worker}-{model}_{version}-{stream}" if record.name == MODEL else "W-{worker}-{model}_{version}"
    return pattern.format_map(labels)


def _logger(record: logging.LogRecord) -> str:
    return "MODEL_LOG" if record.name == MODEL else record.name
