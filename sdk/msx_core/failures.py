"""Makes the failure of a request from an exception, with a message for the client."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

from msx_core.errors import HandlerLoadError, PredictionError
from msx_core.extras import remedy
from msx_core.statuses import OUT_OF_RESOURCES, PREDICTION_FAILED

MAX_SUMMARY = 2_000
"""Characters. Some handlers put whole inputs into the texts of their errors."""
MAX_TRACEBACK = 32_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=[>,])")
"""The address in Python's default text of an object: `<_io.BytesIO object at 0x7f…>`."""
_FOR_DEVELOPERS = re.compile(r"\n(-{20,}\n- |At:\n  )")
"""The beginning of what MindSpore and pybind11 append to their messages: stacks in C++ and Python, the network's
code."""

_NO_MEMORY = re.compile(
    r"out of memory|memory (pool )?(isn't|is not|not) enough|\bm?alloc(ate)? ([a-z]+ ){0,4}mem(ory)?( block)? failed"
    r"|memory m?alloc failed|failed to m?alloc(ate)? ([a-z]+ ){0,4}memory",
    re.IGNORECASE,
)
"""The words of MindSpore 2.10's executors and memory pools, and of CANN and torch."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The failure of a request: HTTP status, message and error code for the client, traceback for the log."""

    status: int
    message: str
    traceback: str = ""
    code: str = ""

    @classmethod
    def of(cls, error: BaseException) -> RequestFailure:
        """Maps an exception as TorchServe does: the handler's own status, 507 if memory ran out, else 503."""
        if isinstance(error, PredictionError):
            return cls(error.status, without_addresses(error.message), code=error.code)
        trace = shortened("".join(traceback.format_exception(error)), MAX_TRACEBACK)
        if is_out_of_memory(error):
            return cls(OUT_OF_RESOURCES, f"Out of resources: {summary(error)}", trace)
        return cls(PREDICTION_FAILED, f"Prediction failed: {summary(error)}", trace)


def summary(error: BaseException) -> str:
    """`ValueError: text` on one line, without the stacks that MindSpore appends."""
    if isinstance(error, SystemExit):
        return without_addresses(f"the handler called sys.exit({error.code!r})")
    text = shortened(" ".join(_FOR_DEVELOPERS.split(text_of(error), maxsplit=1)[0].split()), MAX_SUMMARY)
    text = without_addresses(text)
    return f"{type(error).__name__}: {text}{remedy(error)}" if text else type(error).__name__


def without_addresses(text: str) -> str:
    """Addresses are of no use to a client, and tell an attacker about the server's memory."""
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def is_out_of_memory(error: BaseException) -> bool:
    """A MemoryError, or an error whose text says so: MindSpore and CANN raise RuntimeError, torch an error with
    "CUDA". A HandlerLoadError explains what is wrong, and may name CUDA for another reason."""
    text = text_of(error)
    of_torch = "CUDA" in text and not isinstance(error, HandlerLoadError)
    return isinstance(error, MemoryError) or _NO_MEMORY.search(text) is not None or of_torch


def shortened(text: str, limit: int) -> str:
    """Beginning and end of a text of more than `limit` characters."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … ({len(text)} characters) … {text[-half:]}"


def text_of(error: BaseException) -> str:
    """The error's text, whatever its class makes of `str`."""
    try:
        return str(error)
    except Exception:
        return "(its text cannot be shown)"
