"""Errors of handlers, as clients see them.

contract#errors-of-handlers
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.handlers import archive_of
from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import assert_error
from tests.e2e.server import RunningServer

pytestmark = pytest.mark.e2e


def prepare(store: Path) -> None:
    archive_of("raising", store)


SERVER = Setup(prepare=prepare, load=("raising.mar",))


@pytest.mark.parametrize(
    ("order", "status", "message"),
    [
        ({"prediction": ["not this one", 404]}, 404, "not this one"),
        ({"prediction": ["by default"]}, 500, "by default"),
        ({"prediction": ["no error's status", 200]}, 500, "no error's status"),
        ({"memory": "gone"}, 507, "Out of resources"),
        ({"runtime": "CUDA error: out of memory"}, 507, "Out of resources"),
        ({"runtime": "CUDA driver"}, 507, "Out of resources"),
        ({"runtime": "something else"}, 503, "Prediction failed"),
        ({"return": "not a list"}, 503, "Invalid model predict output"),
        ({"return": "too many"}, 503, "number of batch response mismatched"),
        ({"return": "unserializable"}, 503, "Unsupported model output data type"),
    ],
    ids=str,
)
def test_errors(server: RunningServer, order: dict[str, Any], status: int, message: str) -> None:
    """`type` is always the same, and the worker lives on."""
    assert_error(server.predict("raising", order), status, "InternalServerException", message, exact=False)
    assert server.predict("raising", {}).text == "fine"


@pytest.mark.parametrize(
    ("kind", "text", "status"),
    [("memory", "gone", 507), ("runtime", "CUDA error", 507), ("runtime", "other", 500), ("value", "bad", 500)],
)
def test_errors_at_the_load(server: RunningServer, kind: str, text: str, status: int) -> None:
    config = f"kind: {kind}\ntext: {text}\nmaxRetryTimeoutInSec: 0\n"
    reply = server.register(archive_of("load_error", server.store, name=f"{kind}-{status}", config=config))
    message = f"Failed to start workers for model {kind}-{status} version: 1.0"
    assert_error(reply, status, "InternalServerException", message, exact=False)
    assert text in reply.json()["message"]
