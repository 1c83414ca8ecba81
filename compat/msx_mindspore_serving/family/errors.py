"""MindSpore Serving's errors: a number and a text, of a whole request or of one instance."""

from collections.abc import Sequence
from typing import NamedTuple

from msx_core.service_errors import BadRequest, HandlerFailed, Overloaded, ServiceError, ServiceUnavailable, WorkerDied

FAILED, INVALID_INPUTS, SYSTEM_ERROR, WORKER_UNAVAILABLE, SERVABLE_UNAVAILABLE = 1, 2, 3, 4, 5
"""The numbers of errors; 0 is success."""

_TOO_MANY = "Serving Error: enqueued requests count exceeds the limit"

LONGEST_QUOTE = 192
"""Letters of what a client sent that a text repeats."""


class Spec(NamedTuple):
    """Servable and method that a request asks for. `version` 0 is the newest."""

    servable: str
    method: str
    version: int = 0


class ErrorText(NamedTuple):
    code: int
    text: str


class ServingError(BadRequest):
    """A request that is refused, in MindSpore Serving's words."""

    def __init__(self, text: str, code: int = INVALID_INPUTS) -> None:
        super().__init__(text)
        self.code = code


def quoted(text: str) -> str:
    """Quote a text; of a long one its beginning and its end."""
    return text if len(text) <= 2 * LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...{text[-LONGEST_QUOTE:]}"


def unavailable(spec: Spec) -> str:
    return f"Request servable({spec.servable}) method({spec.method}) , servable is not available"


def error_text(error: ServiceError, spec: Spec) -> ErrorText:
    """Code and text of any error, for the client."""
    if isinstance(error, ServingError):
        return ErrorText(error.code, error.message)
    if isinstance(error, HandlerFailed):
        return ErrorText(_code_of(error), error.message)
    if isinstance(error, Overloaded):
        return ErrorText(FAILED, _overload(error))
    if isinstance(error, ServiceUnavailable):
        return ErrorText(SERVABLE_UNAVAILABLE, unavailable(spec))
    return ErrorText(WORKER_UNAVAILABLE if isinstance(error, WorkerDied) else FAILED, error.plain)


def same_for_all(errors: Sequence[ErrorText | None]) -> ErrorText | None:
    """The error of the whole request, if all its instances failed alike."""
    first = errors[0]
    return first if first is not None and all(error == first for error in errors) else None


def _overload(error: Overloaded) -> str:
    """Clients know too many requests by the first words."""
    return error.plain if error.plain.startswith(_TOO_MANY) else f"{_TOO_MANY}: {error.plain}"


def _code_of(error: HandlerFailed) -> int:
    """A servable's worker gives the number as the code; what another handler refuses is its input."""
    if error.code.isdecimal():
        return int(error.code)
    return INVALID_INPUTS if 400 <= error.status < 500 else FAILED
