from __future__ import annotations

import logging

import msgspec
import pytest

from msx_core.service_errors import BadRequest, Bug, ModelNotFound, PayloadTooLarge, ServiceError, ServiceUnavailable
from msx_net.http.failures import failure_reply, reported
from msx_net.http.family import Failure, Family
from tests.net.http.exchanges import TORCHSERVE
from tests.retry import told_wait

OTHER = Family("other", (), lambda error: Failure(400, b"no", (("x-own", "1"),)))


def told(error: ServiceError) -> tuple[int, dict[str, str], bytes]:
    status, headers, body = failure_reply(TORCHSERVE, error, "id-1")
    return status, {name.decode(): value.decode() for name, value in headers}, body


def test_torchserves_has_code_type_and_message() -> None:
    status, headers, body = told(ModelNotFound("m"))
    assert status == 404
    assert msgspec.json.decode(body) == {
        "code": 404,
        "type": "ModelNotFoundException",
        "message": "Model not found: m",
    }
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == "id-1"
    assert headers["content-length"] == str(len(body))
    assert headers["cache-control"] == "no-cache; no-store, must-revalidate, private"


def test_an_errors_own_headers() -> None:
    assert told_wait(told(ServiceUnavailable("full"))[1]) <= 2
    assert "retry-after" not in told(BadRequest("no"))[1]


def test_torchserves_413_has_no_body() -> None:
    assert told(PayloadTooLarge("too large")) == (413, {"content-length": "0"}, b"")


def test_a_family_has_its_own_form() -> None:
    status, headers, body = failure_reply(OTHER, BadRequest("x"), "id-1")
    assert (status, body) == (400, b"no")
    assert (b"x-own", b"1") in headers


def test_a_bug_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    known = BadRequest("x")
    assert reported(known, "id-1") is known
    assert caplog.records == []
    bug = reported(ZeroDivisionError("by zero"), "id-1")
    assert isinstance(bug, Bug)
    assert bug.message == "Internal error: ZeroDivisionError: by zero"
    assert [(one.levelno, one.__dict__["request_id"]) for one in caplog.records] == [(logging.ERROR, "id-1")]
