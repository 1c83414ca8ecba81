"""A peer as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from benchmarks.load.client import Address
from benchmarks.peers.process import running


def test_a_peer_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such port')"]
    peer = running("the peer", command, tmp_path, Address("127.0.0.1", 1), "/")
    with pytest.raises(click.ClickException, match=r"(?s)the peer did not start.*no such port"), peer:
        raise AssertionError("it is not there")
