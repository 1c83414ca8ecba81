"""TorchServe's log files, and the rotation of our own."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import stat
from pathlib import Path

import pytest

from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.background_log import BackgroundLog
from msx_frontend.logs.file_mode import file_mode
from msx_frontend.logs.output import set_up_logging
from msx_frontend.logs.rotating import KEPT
from msx_frontend.metrics.log import MetricLogs
from msx_frontend.workers.output import RECORD_SEPARATOR, WorkerOutput
from tests.frontend.logs.test_access_log import Call
from tests.loops import run

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"


def test_the_files_are_there_from_the_start(tmp_path: Path) -> None:
    """For log shippers and `tail -f`."""
    set_up_logging(None, io.StringIO(), tmp_path / "logs")
    names = ("access_log.log", "model_log.log", "ts_log.log")
    assert {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()} == dict.fromkeys(names, "")


def test_the_lines_of_the_servers_and_the_models_log(tmp_path: Path) -> None:
    set_up_logging(None, io.StringIO(), tmp_path)
    logging.getLogger("msx.server").warning("hello %s", "you")
    labels = {"model": "m", "version": "1.0", "worker": 9000, "rank": 0}
    logging.getLogger("msx.workers").error("ended", extra=labels)
    logging.getLogger("msx.model").info("said", extra={**labels, "stream": "stdout"})
    logging.getLogger("msx.model").error("wrong", extra={**labels, "stream": "stderr"})
    server, models = ((tmp_path / name).read_text().splitlines() for name in ("ts_log.log", "model_log.log"))
    assert len(server) == 2
    assert re.fullmatch(rf"{MOMENT} \[WARN \] MainThread msx\.server - hello you", server[0])
    assert re.fullmatch(rf"{MOMENT} \[ERROR\] W-9000-m_1\.0 msx\.workers - ended", server[1])
    assert re.fullmatch(rf"{MOMENT} \[INFO \] W-9000-m_1\.0-stdout MODEL_LOG - said", models[0])
    assert re.fullmatch(rf"{MOMENT} \[ERROR\] W-9000-m_1\.0-stderr MODEL_LOG - wrong", models[1])


def test_terminal_escapes_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    """A line that a worker prints or logs may be a client's text."""
    set_up_logging(None, io.StringIO(), tmp_path)
    record = RECORD_SEPARATOR + json.dumps({"level": "ERROR", "message": "\x1b]0;x\x07", "traceback": "T: \x1b[1m"})
    for stream in ("stdout", "stderr"):
        output = WorkerOutput({"model": "m", "version": "1.0", "worker": 9000, "rank": 1}, stream)
        output.data_received(b"\x1b[31mred\x1b[0m \xc2\x9b2J \xff\n" + record.encode() + b"\n")
    logging.getLogger("msx.workers").error("Its last words: %s", output.crash_cause)
    models, server = (tmp_path / "model_log.log").read_text(), (tmp_path / "ts_log.log").read_text()
    assert models.count("- \\x1b[31mred\\x1b[0m \\x9b2J \ufffd") == 2
    assert models.count(r"- \x1b]0;x\x07") == models.count(r"T: \x1b[1m") == 2
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", models + server)


def test_the_access_log(tmp_path: Path) -> None:
    console: list[str] = []
    output = set_up_logging(None, io.StringIO(), tmp_path)

    async def test() -> None:
        log = AccessLog(console.append, file=output.access_file)
        log.write(Call(), 200)
        log.write(Call(), 404)
        log.flush()

    run(test())
    assert output.access_file is not None
    output.access_file.close()
    first, second = (tmp_path / "access_log.log").read_text().splitlines()
    assert re.fullmatch(rf'{MOMENT} - /10\.0\.0\.1:4711 "POST /predictions/m\?x=1 HTTP/1\.1" 200 \d+', first)
    assert '" 404 ' in second
    assert console[0].count("\n") == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log4j2.xml", "<Configuration/>"),
        ("log4j2.properties", "rootLogger.level=info"),
        ("log4j2.yaml", "Configuration: {status: warn}"),
        ("log4j2.json", '{"Configuration": {}}'),
    ],
)
def test_a_configuration_of_log4j_is_taken_with_one_notice(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    stream = io.StringIO()
    output = set_up_logging(tmp_path / name, stream, tmp_path / "logs")
    assert output.logger is None
    assert stream.getvalue().count("\n") == 1
    assert f"{name} is a configuration of log4j" in stream.getvalue()
    assert "are not followed" in (tmp_path / "logs" / "ts_log.log").read_text()


def test_a_configuration_of_ones_own_replaces_the_files(tmp_path: Path) -> None:
    (tmp_path / "log.yaml").write_text("version: 1\n")
    output = set_up_logging(tmp_path / "log.yaml", io.StringIO(), tmp_path / "logs")
    assert output.access_file is None
    assert not (tmp_path / "logs").exists()


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stream = io.StringIO()
    set_up_logging(None, stream, tmp_path / "file")
    logging.getLogger("msx.server").info("one")
    logging.getLogger("msx.server").info("two")
    assert stream.getvalue().count("ts_log.log cannot be written") == 1
    assert '"two"' in stream.getvalue()


def test_the_background_log_is_moved_aside_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "msx.log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    background = BackgroundLog(path, 10, fds=(fd,))
    for number in range(KEPT + 3):
        os.write(fd, f"line {number}\n".encode())
        background.look()
        os.write(fd, b"more\n")
        background.look()
    os.close(fd)
    last = KEPT + 2
    assert (tmp_path / "msx.log.1").read_text() == f"line {last}\nmore\n"
    assert path.read_text() == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["msx.log", *(f"msx.log.{n + 1}" for n in range(KEPT))]


def test_a_log_of_torchserves_name_is_moved_aside_at_100_mb_and_five_are_kept(tmp_path: Path) -> None:
    set_up_logging(None, io.StringIO(), tmp_path)
    log, path = logging.getLogger("msx.server"), tmp_path / "ts_log.log"
    for number in range(KEPT + 2):
        os.truncate(path, (100 << 20) - 10)
        log.warning("line %d", number)
        assert path.stat().st_size < 1000
    assert sorted(one.name for one in tmp_path.glob("ts_log.log*")) == [
        "ts_log.log",
        *(f"ts_log.log.{n}" for n in range(1, 6)),
    ]
    assert (tmp_path / "ts_log.log.5").stat().st_size == (100 << 20) - 10


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_log_files_are_not_for_every_user(tmp_path: Path) -> None:
    """Neither those of an earlier server, nor what is made when a file is full."""
    for name in ("access_log.log", "access_log.log.1"):
        (tmp_path / name).write_text("earlier\n")
        (tmp_path / name).chmod(0o644)
    access = set_up_logging(None, io.StringIO(), tmp_path).access_file
    assert access is not None
    MetricLogs(tmp_path)
    assert set(_modes(tmp_path).values()) == {0o640}
    access.doRollover()
    access.write("new\n")
    access.close()
    assert len(_modes(tmp_path)) == 7
    assert set(_modes(tmp_path).values()) == {0o640}


def test_log_file_mode(tmp_path: Path) -> None:
    set_up_logging(None, io.StringIO(), tmp_path, file_mode("0600"))
    assert set(_modes(tmp_path).values()) == {0o600}


def test_log_file_mode_gives_no_more_than_the_umask() -> None:
    before = os.umask(0o077)
    try:
        assert file_mode("0666") == 0o600
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)


def test_the_mode_of_the_background_log(tmp_path: Path) -> None:
    path = tmp_path / "msx.log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, b"x" * 100)
    background = BackgroundLog(path, 10, fds=(fd,))
    assert _modes(tmp_path) == {"msx.log": 0o640}
    background.look()
    os.close(fd)
    assert _modes(tmp_path) == {"msx.log": 0o640, "msx.log.1": 0o640}


def test_a_log_that_another_process_has_moved_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "msx.log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, b"x" * 100)
    path.rename(tmp_path / "theirs")
    path.write_text("new")
    BackgroundLog(path, 10, fds=(fd,)).look()
    os.close(fd)
    assert {entry.name for entry in tmp_path.iterdir()} == {"msx.log", "theirs"}
