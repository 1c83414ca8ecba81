from __future__ import annotations

import pytest

from msx_core.service_errors import (
    HandlerFailed,
    ModelNotFound,
    Overloaded,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_frontend.apis.kserve.errors import ManyReplies, error_text, failure
from msx_frontend.apis.kserve.grpc.status import open_inference_code
from msx_frontend.apis.kserve.infer import opened
from msx_net.grpc.codes import Code


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelNotFound("m"), 404, "NOT_FOUND"),
        (Overloaded("full"), 503, "RESOURCE_EXHAUSTED"),
        (ServiceUnavailable("none"), 503, "UNAVAILABLE"),
        (HandlerFailed(503, "Prediction failed"), 500, "INTERNAL"),
        (HandlerFailed(400, "x"), 400, "INVALID_ARGUMENT"),
        (HandlerFailed(409, "x"), 409, "ABORTED"),
        (WorkerDied("x", killed=True), 500, "INTERNAL"),
        (ManyReplies("m"), 501, "UNIMPLEMENTED"),
    ],
)
def test_statuses_and_codes(error: ServiceError, status: int, code: str) -> None:
    told = failure(error)
    assert (told.status, told.body) == (status, {"error": error.message})
    assert open_inference_code(error) is Code[code]


@pytest.mark.parametrize(
    ("body", "words"), [(b"no", "no"), (b'{"error": "no"}', "no"), (b'{"\xff": 1}', '{"\ufffd": 1}')]
)
def test_the_words_of_a_handler(body: bytes, words: str) -> None:
    assert error_text(body) == words


@pytest.mark.parametrize("message", [b"", b"no message"])
def test_a_worker_that_answers_nonsense(message: bytes) -> None:
    with pytest.raises(HandlerFailed, match="of model m"):
        opened(message, "m")
