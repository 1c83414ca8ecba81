"""TorchServe's replies: what all of them have in common."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx

from tests.phrases import no_worker

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

RESOURCE_NOT_FOUND = "Requested resource is not found, please refer to API document."
METHOD_NOT_ALLOWED = "Requested method is not allowed, please refer to API document."
NO_WORKER = (
    f"{no_worker('{}')}. Please use scale workers API to add workers. "
    "If this is a sequence inference, please check if it is closed, or expired; or exceeds maxSequenceJobQueueSize"
)


def assert_common_headers(reply: httpx.Response) -> None:
    """contract#http-conventions: of every reply but 413."""
    assert UUID4.fullmatch(reply.headers["x-request-id"]), reply.headers
    assert reply.headers["pragma"] == "no-cache"
    assert reply.headers["cache-control"] == "no-cache; no-store, must-revalidate, private"
    assert reply.headers["expires"] == "Thu, 01 Jan 1970 00:00:00 UTC"
    assert reply.headers["connection"] == ("keep-alive" if reply.status_code < 400 else "close")
    assert ("content-length" in reply.headers) != ("transfer-encoding" in reply.headers)


def assert_json(reply: httpx.Response, status: int, expected: Any) -> None:
    """Status and content, in TorchServe's layout: two spaces, members in order, a line feed at the end."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == expected
    assert reply.text == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    assert_common_headers(reply)


def assert_status(reply: httpx.Response, status: int, text: str) -> None:
    """`{"status": text}`."""
    assert_json(reply, status, {"status": text})


def assert_error(reply: httpx.Response, status: int, kind: str, message: str, *, exact: bool = True) -> None:
    """`{code, type, message}`; `message` is the whole text, or with `exact=False` its beginning."""
    assert reply.status_code == status, reply.text
    body = reply.json()
    if not exact or message in (RESOURCE_NOT_FOUND, METHOD_NOT_ALLOWED):  # MSX says more
        assert body["message"].startswith(message), body["message"]
        message = body["message"]
    assert_json(reply, status, {"code": status, "type": kind, "message": message})


MEMBERS = [
    "modelName",
    "modelVersion",
    "modelUrl",
    "runtime",
    "minWorkers",
    "maxWorkers",
    "batchSize",
    "maxBatchDelay",
    "responseTimeout",
    "startupTimeout",
    "maxRetryTimeoutInSec",
    "clientTimeoutInMills",
    "parallelType",
    "parallelLevel",
    "deviceType",
    "continuousBatching",
    "useJobTicket",
    "useVenv",
    "stateful",
    "sequenceMaxIdleMSec",
    "sequenceTimeoutMSec",
    "maxNumSequence",
    "maxSequenceJobQueueSize",
    "loadedAtStartup",
    "workers",
    "jobQueueStatus",
]
"""Members that describe a model, in TorchServe's order."""
