"""Errors that a handler raises.

Exception
├── HandlerLoadError     the model cannot be loaded
└── PredictionError      a status and a message of the handler's choice
    └── InvalidInput     400: this request is wrong; its neighbours in the batch are not
"""

from typing import Any

from msx_core.statuses import PREDICTION_FAILED

__all__ = ["HandlerLoadError", "InvalidInput", "PredictionError"]


class PredictionError(Exception):
    """Ends one request, or the batch in which it is raised, with an HTTP status (400 to 599) and a message for the
    client."""

    status = PREDICTION_FAILED
    message = ""
    code = ""
    """An error code for programs, such as OpenAI's clients expect."""

    def __init__(self, status: int, message: str) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"PredictionError status {status} is not an HTTP error status (400 to 599)")
        super().__init__(message)
        self.status = int(status)
        self.message = str(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.message)  # a handler's process pool hands errors back pickled


class InvalidInput(PredictionError):
    """The request's input is wrong: 400, with a message that names the field and what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(400, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


class HandlerLoadError(Exception):
    """The handler cannot be found, imported or initialised."""
