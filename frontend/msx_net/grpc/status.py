"""Which gRPC status a client sees for an error."""

from typing import Any

from msx_core.retry import AFTER_MS, retry_metadata
from msx_core.service_errors import (
    BadRequest,
    HandlerFailed,
    InvalidKey,
    ModelNotFound,
    ModelVersionNotFound,
    Overloaded,
    ServiceError,
    ServiceUnavailable,
)
from msx_core.statuses import PREDICTION_FAILED
from msx_net.grpc.codes import Code
from msx_net.grpc.messages import message_class

_Status = message_class("google.rpc.Status")
_ErrorInfo = message_class("google.rpc.ErrorInfo")
_RetryInfo = message_class("google.rpc.RetryInfo")

# TorchServe's inference service calls all of these INTERNAL; its clients may look for that.
_TORCHSERVE_INTERNAL = (BadRequest, ModelNotFound, ModelVersionNotFound, ServiceUnavailable)

_ARCHIVE, _HTTP = "org.pytorch.serve.archive", "org.pytorch.serve.http"
_PACKAGES = {
    "DownloadArchiveException": _ARCHIVE,
    "InvalidModelException": f"{_ARCHIVE}.model",
    "ModelException": f"{_ARCHIVE}.model",
    "ModelNotFoundException": f"{_ARCHIVE}.model",
    "ModelVersionNotFoundException": f"{_ARCHIVE}.model",
}
"""Packages of TorchServe's classes that are not in its package http."""

LONGEST_MESSAGE = 2048
"""Bytes. Details travel as a header, three bytes for each byte that is not ASCII; clients take 8 KiB of headers."""


def standard_code(error: ServiceError) -> Code:
    return Code[error.grpc_code]


def torchserve_code(error: ServiceError) -> Code:
    """For TorchServe's inference service."""
    return Code.INTERNAL if isinstance(error, _TORCHSERVE_INTERNAL) else standard_code(error)


def details(error: ServiceError) -> str:
    """TorchServe's: the message, then the name of its class on a line of its own; for a refused token the message.

    A message of more than LONGEST_MESSAGE bytes is cut.
    """
    message = _cut(error.message)
    return message if isinstance(error, InvalidKey) else f"{message}\n{class_name(error)}"


def class_name(error: ServiceError) -> str:
    """TorchServe's class of such an error, with its package."""
    name = error.torchserve_type
    return f"{_PACKAGES.get(name, _HTTP)}.{name}"


def status_message(error: ServiceError) -> Any:
    """A google.rpc.Status, for the error of one request of a stream that goes on."""
    status = _Status(code=torchserve_code(error).value, message=_cut(error.message))
    status.details.add().Pack(_ErrorInfo(reason=class_name(error)))
    if (wait := dict(error.headers).get(AFTER_MS)) is not None:
        info = _RetryInfo()
        info.retry_delay.FromMilliseconds(int(wait))
        status.details.add().Pack(info)
    return status


def open_inference_code(error: ServiceError) -> Code:
    """KServe's clients repeat what is UNAVAILABLE, and so add to an overload; what a handler raised fails again."""
    if isinstance(error, Overloaded):
        return Code.RESOURCE_EXHAUSTED
    if isinstance(error, HandlerFailed) and error.status == PREDICTION_FAILED:
        return Code.INTERNAL
    return standard_code(error)


def metadata(error: ServiceError) -> list[tuple[str, str]]:
    """Metadata of an error: when to retry."""
    return retry_metadata(error.headers)


def sentence(error: ServiceError) -> str:
    """The message alone; one of more than LONGEST_MESSAGE bytes is cut."""
    return _cut(error.plain)


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= LONGEST_MESSAGE else data[:LONGEST_MESSAGE].decode(errors="ignore") + " …"
