"""Which gRPC status a client sees for an error."""

from __future__ import annotations

from grpc import StatusCode

from msx_frontend.errors import (
    BadRequest,
    InvalidKey,
    ModelNotFound,
    ModelVersionNotFound,
    ServiceError,
    ServiceUnavailable,
)

# TorchServe's inference service calls all of these INTERNAL; its clients may look for that.
_TORCHSERVE_INTERNAL = (BadRequest, ModelNotFound, ModelVersionNotFound, ServiceUnavailable)

LONGEST_MESSAGE = 2048
"""Bytes. Details travel as a header, three bytes for each byte that is not ASCII; clients take 8 KiB of headers."""


def standard_code(error: ServiceError) -> StatusCode:
    return StatusCode[error.grpc_code]


def torchserve_code(error: ServiceError) -> StatusCode:
    """For TorchServe's inference service."""
    return StatusCode.INTERNAL if isinstance(error, _TORCHSERVE_INTERNAL) else standard_code(error)


def details(error: ServiceError) -> str:
    """TorchServe's: the message, then the type on a line of its own; a refused token has the message alone.

    A message of more than LONGEST_MESSAGE bytes is cut.
    """
    message = _cut(error.message)
    return message if isinstance(error, InvalidKey) else f"{message}\n{error.type}"


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= LONGEST_MESSAGE else data[:LONGEST_MESSAGE].decode(errors="ignore") + " …"
