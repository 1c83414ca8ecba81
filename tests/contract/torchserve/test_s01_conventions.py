"""§1: server and HTTP conventions."""

from __future__ import annotations

import pytest

from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import METHOD_NOT_ALLOWED, RESOURCE_NOT_FOUND, assert_error, assert_status
from tests.e2e.server import RunningServer

pytestmark = pytest.mark.e2e

SERVER = Setup(services=("echo",), load=("echo.mar",))


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/ping", "/ping/"])
def test_ping_ignores_the_method_and_a_trailing_slash(server: RunningServer, method: str, path: str) -> None:
    assert_status(server.inference.request(method, path), 200, "Healthy")


def test_an_unknown_path(server: RunningServer) -> None:
    for client in (server.inference, server.management):
        assert_error(client.get("/no/such/path"), 404, "ResourceNotFoundException", RESOURCE_NOT_FOUND)


def test_get_of_the_root(server: RunningServer) -> None:
    for client in (server.inference, server.management):
        assert_error(client.get("/"), 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


def test_an_unknown_model(server: RunningServer) -> None:
    assert_error(server.predict("absent"), 404, "ModelNotFoundException", "Model not found: absent")
    message = "Model version: 9.9 does not exist for model: echo"
    assert_error(server.predict("echo/9.9"), 404, "ModelVersionNotFoundException", message)
