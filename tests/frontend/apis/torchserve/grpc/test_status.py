from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_core import service_errors
from msx_core.replies import reply_buffer
from msx_core.service_errors import (
    BadRequest,
    HandlerFailed,
    InvalidKey,
    ModelNotFound,
    Overloaded,
    PayloadTooLarge,
    ServiceError,
    WorkerDied,
)
from msx_frontend import management_errors
from msx_frontend.apis.torchserve.grpc import inference
from msx_frontend.apis.torchserve.grpc.status import details, status_message, torchserve_code
from msx_net.grpc.codes import Code
from msx_net.grpc.messages import message_class
from msx_net.grpc.status import standard_code
from tests.phrases import worker_died

PAGE = (Path(__file__).parents[5] / "docs/grpc.md").read_text()

OURS = {service_errors.__name__, inference.__name__, reply_buffer.__name__}

NOT_HERE = {
    service_errors.ResourceNotFound,
    service_errors.MethodNotAllowed,
    service_errors.PayloadTooLarge,
    management_errors.InvalidModel,
    management_errors.ArchiveNotFound,
    management_errors.DownloadFailed,
    management_errors.RequirementsFailed,
    management_errors.Conflict,
    management_errors.DefaultVersionInUse,
    management_errors.ModelApiDisabled,
    management_errors.WorkersNotStarted,
}
"""Errors that this service never has: they are about paths, bodies and management."""

HANDLER_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "RESOURCE_EXHAUSTED",
    416: "OUT_OF_RANGE",
    418: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    507: "INTERNAL",
}


def every_error(base: type[ServiceError] = ServiceError) -> Iterator[type[ServiceError]]:
    yield base
    for error in base.__subclasses__():
        if error.__module__ in OURS:
            yield from every_error(error)


@pytest.mark.parametrize("error", list(every_error()), ids=str)
def test_every_error_has_a_code_and_a_row_in_the_docs(error: type[ServiceError]) -> None:
    code = torchserve_code(error.__new__(error))
    assert code is not Code.OK
    if error not in NOT_HERE:
        assert f"| `{code.name}` | {error.type} |" in PAGE


@pytest.mark.parametrize(("status", "code"), HANDLER_CODES.items())
def test_a_handlers_status(status: int, code: str) -> None:
    assert torchserve_code(HandlerFailed(status, "")).name == code
    assert f"`{code}`" in PAGE


def test_unknown_models_are_internal_on_torchserves_service_only() -> None:
    assert (torchserve_code(ModelNotFound("m")), standard_code(ModelNotFound("m"))) == (
        Code.INTERNAL,
        Code.NOT_FOUND,
    )
    assert torchserve_code(BadRequest("")) is Code.INTERNAL
    assert torchserve_code(PayloadTooLarge("")) is Code.RESOURCE_EXHAUSTED


def test_details() -> None:
    assert details(WorkerDied("So.")) == worker_died("So.\norg.pytorch.serve.http.InternalServerException")
    assert details(InvalidKey("Refused")) == "Refused"


def test_an_error_within_a_stream_says_when_to_ask_again() -> None:
    status = status_message(Overloaded("full", wait=4))
    reason, retry = message_class("google.rpc.ErrorInfo")(), message_class("google.rpc.RetryInfo")()
    assert status.details[0].Unpack(reason)
    assert status.details[1].Unpack(retry)
    assert 4 <= retry.retry_delay.ToTimedelta().total_seconds() <= 8
    assert len(status_message(WorkerDied("So.")).details) == 1


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_details_fit_into_http_headers(letter: str) -> None:
    text, kind = details(HandlerFailed(400, letter * 10_000)).split("\n")
    assert text == letter * (text.count(letter)) + " …"
    assert 2000 < len(text.encode()) <= 2056
    assert kind == "org.pytorch.serve.http.InternalServerException"
