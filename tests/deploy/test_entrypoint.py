"""The image's entry point, with stand-ins for the commands that it becomes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "container" / "entrypoint.sh"
CONFIG = "/home/model-server/config.properties"


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "msx-serve").write_text('#!/bin/sh\nfor one in msx-serve "$@"; do echo "$one"; done\nexit 7\n')
    (tmp_path / "msx-serve").chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def started(path: str, *arguments: str, **env: str) -> tuple[int, list[str]]:
    """Exit code and words of what is started."""
    done = subprocess.run([SCRIPT, *arguments], env={"PATH": path, **env}, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ([], ["--ts-config", CONFIG]),
        (["serve"], ["--ts-config", CONFIG]),
        (["serve", "--models", "a=b c.mar"], ["--ts-config", CONFIG, "--models", "a=b c.mar"]),
        (["torchserve", "--start", "--model-store", "/m"], ["--start", "--model-store", "/m"]),
        (["torchserve", "--start", "--foreground"], ["--start", "--foreground"]),
        (["msx-serve", "--status"], ["--status"]),
        (["torchserve"], []),
        (["--models", "all"], ["--models", "all"]),
    ],
)
def test_the_server_stays_in_the_foreground(path: str, given: list[str], becomes: list[str]) -> None:
    """In its own process, so that signals and the exit code are the server's."""
    assert started(path, *given) == (7, ["msx-serve", "--foreground", *becomes])


def test_any_other_command_stands(path: str) -> None:
    assert started(path, "sh", "-c", 'echo "$1"; exit 3', "sh", "two words") == (3, ["two words"])


def test_cann_sets_its_variables_where_it_is(path: str, tmp_path: Path) -> None:
    """Its own image's entry point does so, which this one takes the place of."""
    set_env = tmp_path / "set env.sh"
    set_env.write_text("declare -r of_bash=1\nexport ASCEND_HOME_PATH=/cann\nfalse\n")
    found = started(path, "sh", "-c", 'echo "$ASCEND_HOME_PATH $1"', "sh", "a b", CANN_SET_ENV=str(set_env))
    assert found == (0, ["/cann a b"])
    assert started(path, "serve", CANN_SET_ENV=str(set_env)) == (
        7,
        ["msx-serve", "--foreground", "--ts-config", CONFIG],
    )
