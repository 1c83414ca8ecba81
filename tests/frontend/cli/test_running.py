"""`msx-serve status`, `models` and `logs`, with a server that is not there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.status_socket import Status
from msx_frontend.cli import commands
from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands import log_lines, running
from tests.frontend.cli.test_status import info

WORKER = {"id": "9000", "pid": 7, "status": "READY", "memoryUsage": 2e6}
DIGITS = {
    "modelName": "digits",
    "modelVersion": "1.0",
    "modelUrl": "digits.mar",
    "state": "READY",
    "workers": [WORKER, {**WORKER, "status": "STARTING"}],
    "jobQueueStatus": {"pendingRequests": 3},
}


def typed(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Setter of the server's answer from now on, or of the error instead."""
    server = info(tmp_path)

    def set_to(*versions: dict[str, Any], not_loaded: tuple[str, ...] = (), error: Exception | None = None) -> None:
        def asked(_: InstanceInfo) -> Status:
            if error is not None:
                raise error
            return Status(list(versions), list(not_loaded), [{"device": 0}])

        monkeypatch.setattr(running, "asked", asked)
        monkeypatch.setattr(running, "selected", lambda **flags: server)
        monkeypatch.setattr(commands, "running", lambda options: [server])

    return set_to


def test_models_are_a_table(answers: Callable[..., None]) -> None:
    answers(DIGITS)
    head, row = typed("models").stdout.splitlines()
    assert head.split() == ["model", "version", "state", "workers", "url"]
    assert row.split() == ["digits", "1.0", "READY", "1/2", "digits.mar"]
    assert json.loads(typed("models", "--json").stdout)[0]["workers"] == "1/2"
    answers()
    assert typed("models").stdout == "No models are registered.\n"


@pytest.mark.parametrize(
    ("said", "well"),
    [
        ({}, True),
        ({"not_loaded": ("n.mar is not there",)}, False),
        ({"error": OSError("gone")}, False),
    ],
)
def test_status_as_json_says_whether_it_is_well(answers: Callable[..., None], said: dict[str, Any], well: bool) -> None:
    answers(DIGITS, **said)
    done = typed("status", "--json")
    one = json.loads(done.stdout)
    assert (one["pid"], one["well"], done.exit_code) == (1, well, 0 if well else 1)
    assert one.get("error", "gone") == "gone"
    assert one.get("devices", [{"device": 0}]) == [{"device": 0}]


def test_a_failed_model_is_not_well(answers: Callable[..., None]) -> None:
    answers({**DIGITS, "state": "FAILED"})
    assert typed("status", "--json").exit_code == 1


def test_a_server_that_does_not_answer_is_named(answers: Callable[..., None]) -> None:
    answers(error=OSError("gone"))
    done = typed("models")
    assert (done.exit_code, done.stderr) == (1, "Error: The server (pid 1) does not answer: gone\n")


def interrupted(*steps: Callable[[], object]) -> Callable[[float], None]:
    """`time.sleep` that does these steps, one a call, and then is what Ctrl-C is."""
    left: Iterator[Callable[[], object]] = iter(steps)

    def sleep(_: float) -> None:
        if (step := next(left, None)) is None:
            raise KeyboardInterrupt
        step()

    return sleep


def test_watching_ends_with_ctrl_c(answers: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    answers()
    monkeypatch.setattr(time, "sleep", interrupted(lambda: answers(DIGITS)))
    done = typed("status", "--watch")
    assert done.exit_code == 0
    last = [line.split() for line in done.stdout.splitlines() if "digits" in line][-1]
    assert last == ["digits", "1.0", "READY", "3", "9000", "7", "READY", "2", "MB"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "msx.log"
    server = msgspec.structs.replace(info(tmp_path), log_file=str(file))
    monkeypatch.setattr(log_lines, "selected", lambda **flags: server)
    return file


def written(file: Path, *words: str) -> None:
    with file.open("a") as opened:
        opened.writelines(f"{word}\n" for word in words)


def test_the_last_lines_of_the_log(log: Path) -> None:
    written(log, "one", "two", "three")
    assert typed("logs", "-n", "2").stdout.split() == ["two", "three"]


def test_a_log_is_followed_into_the_next_file(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rotate() -> None:
        log.rename(log.with_suffix(".1"))
        written(log, "three")

    written(log, "one")
    steps = interrupted(lambda: written(log, "two"), rotate, lambda: written(log, "four"))
    monkeypatch.setattr(time, "sleep", steps)
    done = typed("logs", "--follow")
    assert (done.exit_code, click.unstyle(done.stdout).split()) == (0, ["one", "two", "three", "four"])


def test_a_server_at_its_terminal_has_no_log(log: Path) -> None:
    done = typed("logs")
    assert done.exit_code == 1
    assert "(pid 1) writes its log to its terminal, not to a file: look there, or start it" in done.stderr
