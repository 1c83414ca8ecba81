"""Channel options, metadata of calls and translation of errors, which both gRPC transports share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from msx_client.errors import ConnectionLostError, DeadlineError, MsxError, UnreachableError, error_of

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
"""The server's limits count."""

_STATUS = {
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "FAILED_PRECONDITION": 409,
    "RESOURCE_EXHAUSTED": 503,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
}
_BY_KIND = {
    "BadRequestException": 400,
    "ConflictStatusException": 409,
    "InvalidKeyException": 401,
    "ModelNotFoundException": 404,
    "ModelVersionNotFoundException": 404,
    "ServiceUnavailableException": 503,
    "TooManyRequestsException": 429,
    "RequestTimeoutException": 504,
}
"""TorchServe's codes say less than its classes."""


def credentials(verify: bool | str) -> grpc.ChannelCredentials:
    """`verify`: True for the authorities that gRPC knows, or a file of certificates. Raises OSError, ValueError."""
    if verify is False:
        raise ValueError("gRPC always verifies certificates: give the server's certificate as `verify`.")
    return grpc.ssl_channel_credentials(Path(verify).read_bytes() if isinstance(verify, str) else None)


@dataclass(frozen=True)
class Channeling:
    """`credentials` is None without TLS."""

    timeout: float
    credentials: grpc.ChannelCredentials | None
    headers: Mapping[str, str]


def metadata_of(key: str | None, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    authorization = [("authorization", f"Bearer {key}")] if key else []
    return (*authorization, *((name.lower(), value) for name, value in headers.items()))


def translated(error: Any, address: str, timeout: float) -> MsxError:
    """`error` is a `grpc.RpcError` with code, details and trailing metadata."""
    code = error.code().name
    sentence, kind = _parted(error.details() or "")
    trailing = {name: value for name, value in error.trailing_metadata() or () if isinstance(value, str)}
    request_id = trailing.get("x-request-id", "")
    if code == "DEADLINE_EXCEEDED":
        return DeadlineError(sentence or f"{address} did not answer within {timeout:g} s.", request_id=request_id)
    if code == "UNAVAILABLE" and not kind and _seconds(trailing) is None:
        if _never_sent(sentence):
            return UnreachableError(f"Nothing answers at {address}: {sentence}.")
        return ConnectionLostError(f"The connection with {address} ended before the answer was complete: {sentence}.")
    status = _BY_KIND.get(kind) or _STATUS.get(code, 500)
    if code == "PERMISSION_DENIED" and "oken" in sentence:
        status = 401
    return error_of(sentence, status, kind or code, request_id, _seconds(trailing))


def _parted(details: str) -> tuple[str, str]:
    """The sentence, and TorchServe's class of the error, which stands on a line of its own."""
    sentence, _, last = details.rpartition("\n")
    if last.startswith("org.pytorch.serve."):
        return sentence, last.rpartition(".")[2]
    return details, ""


def _never_sent(details: str) -> bool:
    """gRPC has no code for it."""
    return any(words in details for words in ("failed to connect", "onnection refused", "DNS resolution failed"))


def _seconds(trailing: Mapping[str, str]) -> float | None:
    for name, unit in (("grpc-retry-pushback-ms", 1000), ("retry-after", 1)):
        if (value := trailing.get(name, "")).isdecimal():
            return int(value) / unit
    return None
