"""TorchServe's gRPC status of an error: its code, and its class with the package of Java."""

from typing import Any

from msx_core.retry import AFTER_MS
from msx_core.service_errors import (
    BadRequest,
    InvalidKey,
    ModelNotFound,
    ModelVersionNotFound,
    ServiceError,
    ServiceUnavailable,
)
from msx_net.grpc.codes import Code
from msx_net.grpc.messages import message_class
from msx_net.grpc.status import cut, standard_code

_Status = message_class("google.rpc.Status")
_ErrorInfo = message_class("google.rpc.ErrorInfo")
_RetryInfo = message_class("google.rpc.RetryInfo")

_INTERNAL = (BadRequest, ModelNotFound, ModelVersionNotFound, ServiceUnavailable)
"""Errors that TorchServe's inference service calls INTERNAL; its clients may look for that."""

_ARCHIVE, _HTTP = "org.pytorch.serve.archive", "org.pytorch.serve.http"
_PACKAGES = {
    "DownloadArchiveException": _ARCHIVE,
    "InvalidModelException": f"{_ARCHIVE}.model",
    "ModelException": f"{_ARCHIVE}.model",
    "ModelNotFoundException": f"{_ARCHIVE}.model",
    "ModelVersionNotFoundException": f"{_ARCHIVE}.model",
}
"""Packages of TorchServe's classes that are not in its package http."""


def torchserve_code(error: ServiceError) -> Code:
    """Code of TorchServe's inference service."""
    return Code.INTERNAL if isinstance(error, _INTERNAL) else standard_code(error)


def details(error: ServiceError) -> str:
    """The message, then the name of its class on a line of its own; for a refused token the message.

    A message that is too long for details is cut.
    """
    message = cut(error.message)
    return message if isinstance(error, InvalidKey) else f"{message}\n{class_name(error)}"


def class_name(error: ServiceError) -> str:
    """TorchServe's class of such an error, with its package."""
    name = error.torchserve_type
    return f"{_PACKAGES.get(name, _HTTP)}.{name}"


def status_message(error: ServiceError) -> Any:
    """A google.rpc.Status, for the error of one request of a stream that goes on."""
    status = _Status(code=torchserve_code(error).value, message=cut(error.message))
    status.details.add().Pack(_ErrorInfo(reason=class_name(error)))
    if (wait := dict(error.headers).get(AFTER_MS)) is not None:
        info = _RetryInfo()
        info.retry_delay.FromMilliseconds(int(wait))
        status.details.add().Pack(info)
    return status
