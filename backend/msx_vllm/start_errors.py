"""Reasons of starts that fail in a process of vLLM's: what vLLM raises says to look at its log."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msx_core.log_records import RECORD_SEPARATOR
from msx_sdk.errors import HandlerLoadError

FILE = "vllm-errors.log"
"""Errors that vLLM's processes log, in the worker's folder: a record a line, as they reach the server."""
MOST = 1 << 20
"""Bytes that are read, and that each of the two files has at most."""
HANDLER = {
    "class": "logging.handlers.RotatingFileHandler",
    "filename": FILE,
    "maxBytes": MOST,
    "backupCount": 1,
    "delay": True,
    "formatter": "records",
    "level": "ERROR",
}
"""`logging.config`'s handler that writes it, in the working directory, as long as the worker lives."""


@contextmanager
def explained(work_dir: Path) -> Iterator[None]:
    """Raise HandlerLoadError with the reason in the place of vLLM's RuntimeError and ValueError."""
    try:
        yield
    except ValueError as error:
        raise HandlerLoadError(f"vllm: vLLM does not take this model, or these arguments: {_refusal(error)}") from error
    except RuntimeError as error:
        raise HandlerLoadError(f"vLLM's engine did not start: {_first(work_dir / FILE) or error}") from error


def _refusal(error: ValueError) -> str:
    """The sentences alone: Pydantic's errors, which vLLM's configurations raise, also print what was given."""
    if not callable(told := getattr(error, "errors", None)):
        return str(error)
    return "; ".join(map(_sentence, told()))


def _sentence(error: dict[str, Any]) -> str:
    """The argument that is wrong, where it is one, and why."""
    argument, why = ".".join(map(str, error.get("loc", ()))), str(error["msg"]).removeprefix("Value error, ")
    return f"{argument}: {why}" if argument else why


def _first(path: Path) -> str:
    """The last line of the first error, or of its traceback; "" without one."""
    try:
        with path.open() as file:
            entry = json.loads(file.readline(MOST).removeprefix(RECORD_SEPARATOR))
        return str((entry.get("traceback") or entry["message"]).strip().splitlines()[-1])
    except (OSError, ValueError, KeyError, IndexError, AttributeError):
        return ""
