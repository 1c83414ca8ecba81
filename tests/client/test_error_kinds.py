"""Which error a status and the server's name of it make."""

from __future__ import annotations

import pytest

from msx_client import ModelFailedError, NotFoundError, RequestError, UnavailableError
from msx_client.errors import error_of


@pytest.mark.parametrize(
    ("status", "kind", "wanted"),
    [
        (503, "InternalServerException", ModelFailedError),
        (500, "InternalServerException", ModelFailedError),
        (400, "InternalServerException", RequestError),  # a handler refused its request
        (503, "PredictionException", ModelFailedError),  # of a model with stages
        (404, "PredictionException", NotFoundError),
        (503, "ServiceUnavailableException", UnavailableError),
    ],
)
def test_what_a_handler_refuses_is_no_failure(status: int, kind: str, wanted: type[Exception]) -> None:
    assert type(error_of("said", status, kind)) is wanted
