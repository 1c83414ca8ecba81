"""A model is packed, served, asked, described and stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.server import new_store, pack_service, run_server

pytestmark = pytest.mark.e2e


def test_echo(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar") as server:
        reply = server.predict("echo", b"hello", headers={"x-request-id": "abc"})
        assert (reply.status_code, reply.content) == (200, b"hello")
        assert reply.headers["x-request-id"] == "abc"
        described = server.describe("echo")
        assert described["state"] == "READY"
        assert [worker["status"] for worker in described["workers"]] == ["READY"]
    assert server.process.returncode == 0
