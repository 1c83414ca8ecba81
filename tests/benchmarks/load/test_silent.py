"""Connections that have had an answer and say nothing more."""

from __future__ import annotations

import socket

import click
import pytest

from benchmarks.load import silent
from benchmarks.load.client import Address
from benchmarks.load.silent import silent_connections
from benchmarks.servers import trivial


def test_they_are_open_while_they_are_needed() -> None:
    with trivial.serve(10) as address, silent_connections(address, 3) as found:
        assert len({connection.getsockname() for connection in found}) == 3
    assert [connection.fileno() for connection in found] == [-1] * 3


def test_a_server_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silent, "LIMIT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        with pytest.raises(click.ClickException, match="did not answer"), silent_connections(address, 1):
            pytest.fail("it had an answer")
