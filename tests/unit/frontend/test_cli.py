"""What `msx-serve` makes of its flags, before anything is started."""

from __future__ import annotations

import itertools

import pytest
from click.testing import CliRunner

from msx_frontend.cli import main

ACTIONS = ("--start", "--stop", "--status", "--backup=copy", "--version")


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ACTIONS, 2)))
def test_a_command_does_one_thing(first: str, second: str) -> None:
    """`--start --stop` did what came last."""
    done = CliRunner().invoke(main, [first, second])
    assert done.exit_code == 2
    assert " exclude each other: give one of them." in done.stderr
    assert first.partition("=")[0] in done.stderr
    assert second.partition("=")[0] in done.stderr


def test_the_same_twice_is_once() -> None:
    done = CliRunner().invoke(main, ["--version", "-v"])
    assert (done.exit_code, done.stdout[:15]) == (0, "MSX Version is ")
