"""Messages of a start on its terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvloop

from msx_frontend.cli import launch
from msx_frontend.cli.launch import run_in_background, run_in_foreground
from msx_frontend.config.load import GivenSettings
from msx_frontend.supervision import needed
from msx_frontend.supervision.fork import FORK_FIRST
from msx_frontend.supervision.frontend_command import READY_FD
from msx_frontend.supervision.wire import close_all
from tests.frontend.config.test_set_flags import options


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_mistyped_key_is_told_on_the_terminal_of_the_foreground(
    stream: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere the log has it."""
    file = tmp_path / "ts.properties"
    file.write_text("supervisor=false\njob_queue_sise=7\n")

    def ran(server: Coroutine[Any, Any, None]) -> None:
        server.close()

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(uvloop, "run", ran)
    assert run_in_foreground(options(ts_config=file, model_store=tmp_path)) == 0
    told = "job_queue_sise: is not a known key and is ignored; did you mean job_queue_size?" in stream.getvalue()
    assert told is stream.isatty()


class Became(Exception):
    """The process is another one now."""


@pytest.fixture
def parents(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Commands that a process has become; it ends with each."""
    became: list[Sequence[str]] = []

    def become(*given: Any, **more: Any) -> None:
        became.append(given[-1])
        raise Became

    monkeypatch.setattr(launch, "fork_frontend", become)
    monkeypatch.setattr(launch, "become_parent", become)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return became


def test_a_command_that_waits_is_told_by_the_frontend_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would wait for as long as the supervisor has what it has read."""
    only_frontends: list[int] = []

    def fork(arguments: Sequence[str], given: Sequence[int]) -> None:
        only_frontends.extend(given)
        raise Became

    read, write = os.pipe()
    monkeypatch.setattr(launch, "fork_frontend", fork)
    monkeypatch.setattr(os, "environ", {**os.environ, READY_FD: str(write)})
    with pytest.raises(Became):
        run_in_foreground(options(model_store=tmp_path, argv=["--start"], env=os.environ))
    assert only_frontends == [write]
    close_all([read, write])


LACKING = "lacks or forbids pidfd_open(2), which Linux has since 5.3"


@pytest.mark.parametrize("key", ["", "supervisor=true"])
@pytest.mark.parametrize("first", [False, True])
def test_a_supervisor_is_usual(
    key: str, first: bool, tmp_path: Path, parents: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As process 1, too, which needs no other parent."""
    monkeypatch.setattr(launch, "is_first_process", lambda: first)
    with pytest.raises(Became):
        run_in_foreground(options(*filter(None, [key]), model_store=tmp_path, argv=["--start"]))
    assert parents == [["--foreground", "--start"]]


@pytest.mark.parametrize("key", ["", "supervisor=false"])
def test_a_server_in_the_background_forks_first(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that starts it has read whether it has a supervisor."""
    commands: list[Sequence[str]] = []

    def started(command: Sequence[str], **more: Any) -> None:
        commands.append(command)
        raise Became

    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(Became):
        run_in_background(options(*filter(None, [key]), model_store=tmp_path, argv=["--start"]))
    assert [FORK_FIRST in command[2] for command in commands] == [not key]
    assert commands[0][3:] == ["msx_frontend.cli.main", "--start", "--foreground"]


def test_process_1_without_a_supervisor_becomes_another_small_parent(
    tmp_path: Path, parents: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "is_first_process", lambda: True)
    with pytest.raises(Became):
        run_in_foreground(options("supervisor=false", model_store=tmp_path, argv=["--start"]))
    assert parents == [["--start"]]


def test_where_there_can_be_no_supervisor_the_log_says_so(
    tmp_path: Path, parents: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has asked for it."""
    monkeypatch.setattr(launch, "lacks", lambda: LACKING)
    notices: list[str] = []

    def ran(settings: GivenSettings, *rest: Any) -> None:
        notices.extend(settings.notices)

    monkeypatch.setattr(launch, "_serve", ran)
    monkeypatch.setattr(uvloop, "run", lambda server: None)
    assert run_in_foreground(options(model_store=tmp_path)) == 0
    assert notices == [f"there is no supervisor, because this system {LACKING}: workers end with a server that crashes"]
    assert parents == []


def test_one_that_was_asked_for_is_missed(
    tmp_path: Path, parents: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "lacks", lambda: LACKING)
    assert run_in_foreground(options("supervisor=true", model_store=tmp_path)) == 1
    assert capsys.readouterr().err == f"supervisor=true cannot be: this system {LACKING}. Set it to false.\n"
    assert parents == []


def test_what_a_supervisor_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert needed.lacks() == ""

    def forbidden(pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    assert needed.lacks() == LACKING
    monkeypatch.delattr(os, "pidfd_open")
    assert needed.lacks() == LACKING
    monkeypatch.delattr(os, "memfd_create")
    assert needed.lacks() == "lacks or forbids memfd_create(2), which Linux has since 3.17"
