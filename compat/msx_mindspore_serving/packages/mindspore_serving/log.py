"""Log lines of servables and start scripts, by the functions of `mindspore_serving.log`.

In a worker they are lines of the server's log; in a script they go to stderr. `GLOG_v` says from which level on:
0 DEBUG, 1 INFO, 2 WARNING (the default), 3 ERROR. It is read once, when the first line is written.
"""

import logging
import os
from functools import cache
from typing import Any

__all__ = ["get_level", "get_log_config"]

_LEVELS = {"3": logging.ERROR, "2": logging.WARNING, "1": logging.INFO, "0": logging.DEBUG}
_NAMES = {number: logging.getLevelName(level) for number, level in _LEVELS.items()}
_LINE = (
    "[%(levelname)s] SERVING(%(process)d:%(thread)d,%(processName)s):%(asctime)s [%(pathname)s:%(lineno)d] %(message)s"
)
_BEHIND = 2
"""Frames between the caller of `info` and logging."""


def debug(msg: object, *args: object, **kwargs: Any) -> None:
    """Log with severity DEBUG; the arguments are those of `logging.Logger.debug`. Raises ValueError for `GLOG_v`."""
    _logger().debug(msg, *args, **_from_caller(kwargs))


def info(msg: object, *args: object, **kwargs: Any) -> None:
    """Log with severity INFO. Raises ValueError for `GLOG_v`."""
    _logger().info(msg, *args, **_from_caller(kwargs))


def warning(msg: object, *args: object, **kwargs: Any) -> None:
    """Log with severity WARNING. Raises ValueError for `GLOG_v`."""
    _logger().warning(msg, *args, **_from_caller(kwargs))


def error(msg: object, *args: object, **kwargs: Any) -> None:
    """Log with severity ERROR. Raises ValueError for `GLOG_v`."""
    _logger().error(msg, *args, **_from_caller(kwargs))


def get_level() -> str:
    """The level as `GLOG_v` writes it: "0" to "3". Raises ValueError for `GLOG_v`."""
    level = _logger().getEffectiveLevel()
    return next(number for number, known in _LEVELS.items() if known == level)


def get_log_config() -> dict[str, str]:
    """The settings that have an effect: lines go to stderr, and from there to the server's log. Raises ValueError for
    `GLOG_v`."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


def _from_caller(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"stacklevel": _BEHIND, **kwargs}


@cache
def _logger() -> logging.Logger:
    logger = logging.getLogger("mindspore_serving")
    logger.setLevel(_level())
    if not logger.hasHandlers():  # a script; a worker has the handler that writes the server's records
        logger.addHandler(_stderr())
    return logger


def _level() -> int:
    """Raises ValueError."""
    number = os.environ.get("GLOG_v", "").strip() or "2"  # noqa: SIM112 - its name
    if number not in _LEVELS:
        raise ValueError(
            f"Incorrect log level:{number}, Please check the configuration of GLOG_v or GLOG_stderrthreshold, desired "
            f"log level :{_NAMES}"
        )
    return _LEVELS[number]


def _stderr() -> logging.Handler:
    handler = logging.StreamHandler()
    formatter = logging.Formatter(_LINE)
    formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%d-%H:%M:%S", "%s.%03d"
    handler.setFormatter(formatter)
    return handler
