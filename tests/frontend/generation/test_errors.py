"""The table of what each error is for the three families."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from msx_core import service_errors
from msx_core.service_errors import AppNotAllowed, HandlerFailed, ServiceError, WorkerDied, WorkerTimedOut
from msx_frontend.generation import errors as llm_errors
from msx_frontend.generation.errors import TABLE, WrongParameter, kserve_failure, openai_failure, row_of, tgi_failure
from tests.frontend.test_errors import subclasses

OWN = [error for error in subclasses(ServiceError) if error.__module__ == llm_errors.__name__]
MET = [error for error in subclasses(ServiceError) if error.__module__ == service_errors.__name__]
"""No request to a model meets those of management."""


@pytest.mark.parametrize("error", [*OWN, *MET])
def test_every_error_that_a_request_can_meet_has_a_row(error: type[ServiceError]) -> None:
    if error not in (ServiceError, HandlerFailed, AppNotAllowed):
        assert any(kind in TABLE for kind in error.__mro__ if kind is not ServiceError)


@pytest.mark.parametrize("error", OWN)
def test_every_error_is_in_the_tree_of_the_module(error: type[ServiceError]) -> None:
    assert error.__name__ in re.findall(r"\w+", llm_errors.__doc__ or "")


@pytest.mark.parametrize("row", dict.fromkeys([*TABLE.values(), *llm_errors.HANDLERS.values()]))
def test_rows(row: llm_errors.Row) -> None:
    assert all(400 <= status < 600 for status in (row.openai, row.tgi, row.kserve))
    assert row.type in (llm_errors.INVALID, llm_errors.SERVER, "rate_limit_error")
    assert (row.openai >= 500) == (row.type == llm_errors.SERVER)


@pytest.mark.parametrize("status", range(400, 600))
def test_a_handlers_status(status: int) -> None:
    row = row_of(HandlerFailed(status, "because"))
    assert (row.openai < 500) == (status < 500)
    assert (row.openai == 429) == (status == 429)
    assert (row.tgi == 422) == (status < 500 and status != 429)


def test_one_error_in_three_shapes() -> None:
    error = WrongParameter("top_k", "at least 0")
    body = {"message": "top_k: at least 0", "type": "invalid_request_error", "param": "top_k", "code": None}
    assert openai_failure(error) == (400, {"error": body}, ())
    text = "Input validation error: top_k: at least 0"
    assert tgi_failure(error) == (422, {"error": text, "error_type": "validation"}, ())
    assert kserve_failure(error) == (400, {"error": "top_k: at least 0"}, ())


@pytest.mark.parametrize("failure", [openai_failure, tgi_failure, kserve_failure])
def test_an_encoding_that_is_not_known(failure: Callable[[ServiceError], llm_errors.TextFailure]) -> None:
    told = failure(service_errors.UnknownEncoding("br?"))
    assert (told.status, told.headers) == (415, (("accept-encoding", "gzip, deflate, zstd"),))


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("max_tokens: at most 7", "max_tokens"),
        ("messages[0].content[1]: no image", "messages[0].content[1]"),
        ("The prompt is too long: 7", None),
    ],
)
def test_a_handlers_parameter_is_named(message: str, parameter: str | None) -> None:
    assert openai_failure(HandlerFailed(400, message)).body["error"]["param"] == parameter
    assert openai_failure(HandlerFailed(503, message)).body["error"]["param"] is None


def test_a_value_that_is_quoted_is_cut() -> None:
    """The reply to a request of some megabytes has not as many."""
    error = WrongParameter("messages[0].role", f"expected user, not {'x' * 300_000!r}")
    assert error.message.startswith("messages[0].role: expected user, not 'xxx")
    assert len(error.message) < 3_000


def test_tgi_has_names_of_its_own() -> None:
    assert tgi_failure(HandlerFailed(400, "max_tokens: at most 7: no")).body["error"] == (
        "Input validation error: `max_new_tokens`: at most 7: no"
    )
    assert tgi_failure(HandlerFailed(500, "prompt: oh")).body["error"] == "prompt: oh"


@pytest.mark.parametrize("error", [WorkerDied("Gone."), WorkerTimedOut("Too slow.")])
def test_what_may_have_killed_a_worker_is_not_tried_again(error: ServiceError) -> None:
    assert ("x-should-retry", "false") in openai_failure(error).headers
