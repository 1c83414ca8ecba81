"""The errors of the protocol: any status with `{"error": …}`."""

from typing import Any

import msgspec

from msx_core.service_errors import HandlerFailed, ServiceError
from msx_frontend.apis.kserve.repository import Unsupported
from msx_frontend.generation.errors import TextFailure, kserve_failure


class ManyReplies(Unsupported):
    def __init__(self, model: str) -> None:
        super().__init__(
            f"Model {model} answers a request more than once, which this call cannot carry: "
            "use ModelStreamInfer of gRPC, or /predictions."
        )


def failure(error: ServiceError) -> TextFailure:
    """As the language models' KServe routes have it; a status of 4xx that the handler chose stays."""
    chosen = isinstance(error, HandlerFailed) and 400 <= error.status < 500
    if chosen or isinstance(error, Unsupported):
        return TextFailure(error.status, {"error": error.message}, ())
    return kserve_failure(error)


def error_text(body: bytes) -> str:
    """Text of an error reply that a handler wrote under its own status: the body, or the `error` of its JSON."""
    text = body.decode("utf-8", "replace")
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
    return str(value["error"]) if isinstance(value, dict) and "error" in value else text
