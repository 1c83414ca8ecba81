"""Formats of the log, and logging that the user configures."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from msx_frontend.cli.subcommands.log_lines import LineFilter
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.output import HumanFormatter, JsonFormatter, LogConfigError, set_up_logging

ACCESS = (
    '{"time":2.5,"level":"INFO","logger":"msx.access","client":"c:1","method":"GET","path":"/x","status":404,"ms":2}'
)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def record(message: str = "hello %s", **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "msx.test", "levelname": "INFO", "msg": message, "args": ("you",)})
    made.__dict__.update(extra)
    return made


def test_json() -> None:
    entry = json.loads(
        JsonFormatter().format(record(request_id="r1", model="m", version="1.0", rank=0, stream="stdout"))
    )
    del entry["time"]
    assert entry == {
        "level": "INFO",
        "logger": "msx.test",
        "message": "hello you",
        "request_id": "r1",
        "model": "m",
        "version": "1.0",
        "rank": 0,
        "stream": "stdout",
    }


def test_json_stays_one_line() -> None:
    try:
        raise ValueError("no\nluck")
    except ValueError:
        line = JsonFormatter().format(record("two\nlines %s", exc_info=sys.exc_info()))
    assert len(line.splitlines()) == 1
    assert "ValueError: no\nluck" in json.loads(line)["traceback"]


def test_human() -> None:
    text = HumanFormatter().format(record())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[INFO   \] msx\.test - hello you", text)
    assert HumanFormatter().format(record(request_id="r1")).endswith("msx.test - hello you [r1]")
    assert "] m 2.0 rank 1 - hello" in HumanFormatter().format(record(model="m", version="2.0", rank=1))


def test_a_terminal_obeys_no_escapes() -> None:
    """Messages and tracebacks show them; JSON has its own form."""
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        raised = record("\x9b31m%s\r", exc_info=sys.exc_info(), model="m\x1b", version="1")
    text = HumanFormatter().format(raised)
    assert r"\x9b31myou\r" in text
    assert r"ValueError: \x1b[2J" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert "\x1b" not in JsonFormatter().format(raised)


def test_the_terminal_decides() -> None:
    for stream, as_json in ((io.StringIO(), True), (Screen(), False)):
        output = set_up_logging(None, stream)
        logging.getLogger("msx.test").info("hello")
        output.write(f"{ACCESS}\n")
        assert output.logger is None
        first, second = stream.getvalue().splitlines()
        assert (first.startswith("{"), second == ACCESS) == (as_json, as_json)


def test_a_terminal_shows_the_lines_of_msx_serve_logs() -> None:
    """The same bytes: those of the JSON lines that another stream gets, as the command shows them."""
    lines, screen = io.StringIO(), Screen()
    for stream in (lines, screen):
        output = set_up_logging(None, stream)
        extra = {"model": "m", "version": "1.0", "worker": 9000, "rank": 0}
        for level, text in ((logging.INFO, "ready"), (logging.WARNING, "a \x1b[2J \u2028 b")):
            record = logging.makeLogRecord(
                {"name": "msx.model", "levelno": level, "msg": text, "created": 1.5, **extra}
            )
            record.levelname = logging.getLevelName(level)
            logging.getLogger("msx.model").handle(record)
        output.write(f"{ACCESS}\n")
    shown = "".join(f"{line}\n" for line in LineFilter(0, None, access=True).shown(io.StringIO(lines.getvalue())))
    assert screen.getvalue() == shown
    words = [line.split(" ", 1)[1] for line in click.unstyle(screen.getvalue()).splitlines()]
    assert words[0] == "INFO     msx.model [m 1.0 9000 0]: ready"
    assert "\\x1b[2J" in screen.getvalue()
    assert words[-1] == "404      GET /x 2 ms c:1"


YAML = """
version: 1
formatters: {plain: {format: "%(name)s %(message)s"}}
handlers: {file: {class: logging.FileHandler, filename: FILE, formatter: plain}}
root: {level: INFO, handlers: [file]}
"""
INI = """
[loggers]
keys=root
[handlers]
keys=file
[formatters]
keys=plain
[logger_root]
level=INFO
handlers=file
[handler_file]
class=FileHandler
args=("FILE",)
formatter=plain
[formatter_plain]
format=%(name)s %(message)s
"""


@pytest.mark.parametrize(("name", "text"), [("log.yaml", YAML), ("log.ini", INI)])
def test_a_users_configuration(tmp_path: Path, name: str, text: str) -> None:
    """Loggers that exist already keep working, and the access log is one of them."""
    existing = logging.getLogger("msx.server")
    (tmp_path / name).write_text(text.replace("FILE", str(tmp_path / "out")))
    output = set_up_logging(tmp_path / name, io.StringIO())
    existing.info("hello")
    assert output.logger is not None
    output.logger.info("access")
    assert (tmp_path / "out").read_text().splitlines() == ["msx.server hello", "msx.access access"]


@pytest.mark.parametrize("text", ["just words", "[1, 2]", "version: 2", "a: [", "version: 1\nroot: {handlers: [x]}"])
def test_a_configuration_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.yaml"
    path.write_text(text)
    with pytest.raises(LogConfigError, match=rf"--log-config {path} is not a logging configuration"):
        set_up_logging(path, io.StringIO())


YAML_WITHOUT_FORM = """
version: 1
handlers: {file: {class: logging.FileHandler, filename: FILE}}
loggers: {msx.access: {level: INFO, handlers: [file], propagate: false}}
"""
INI_WITHOUT_FORM = """
[loggers]
keys=root
[handlers]
keys=file
[formatters]
keys=
[logger_root]
level=INFO
handlers=file
[handler_file]
class=FileHandler
args=("FILE",)
"""


@pytest.mark.parametrize(("name", "text"), [("log.yaml", YAML_WITHOUT_FORM), ("log.ini", INI_WITHOUT_FORM)])
def test_lines_have_a_time_where_a_configuration_gives_them_no_form(tmp_path: Path, name: str, text: str) -> None:
    out = tmp_path / "out"
    (tmp_path / name).write_text(text.replace("FILE", str(out)))
    output = set_up_logging(tmp_path / name, io.StringIO())
    AccessLog(output.write, logger=output.logger).write(Call(), 200)
    line = (
        r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[INFO   \] msx\.access - /1\.2\.3\.4:5 "POST .*" 200 [\d.]+ \[r1\]\n'
    )
    assert re.fullmatch(line, out.read_text())
    assert output.files(None) == [str(out)]  # other tests' loggers may write to the console


def test_where_the_log_is(tmp_path: Path) -> None:
    assert set_up_logging(None, io.StringIO()).files("/msx.log") == ["/msx.log"]
    assert set_up_logging(None, io.StringIO()).files(None) == []
    one, two = str(tmp_path / "a.log"), str(tmp_path / "b.log")
    (tmp_path / "log.yaml").write_text(f"""
version: 1
handlers:
  a: {{class: logging.FileHandler, filename: {one}}}
  b: {{class: logging.FileHandler, filename: {two}}}
  again: {{class: logging.FileHandler, filename: {one}, delay: true}}
  stdout: {{class: logging.StreamHandler, stream: ext://sys.stdout}}
loggers: {{msx.access: {{handlers: [a]}}, msx.test: {{handlers: [b, again]}}}}
root: {{handlers: [stdout]}}
""")
    output = set_up_logging(tmp_path / "log.yaml", io.StringIO())
    assert sorted(output.files("/msx.log")) == sorted([one, two, "/msx.log"])
    assert sorted(output.files(None)) == [one, two]
    for handler in logging.getLogger("msx.test").handlers[:]:
        handler.close()
        logging.getLogger("msx.test").removeHandler(handler)


@pytest.mark.parametrize(
    ("name", "text"),
    [("log.yaml", ""), ("log.yaml", "# later\n"), ("log.yaml", "---\n"), ("log.json", "{}"), ("log.ini", "\n")],
)
def test_an_empty_configuration(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(LogConfigError) as error:
        set_up_logging(path, io.StringIO())
    assert str(error.value) == (
        f"--log-config {path} is empty: give it a logging.config dictionary in YAML or JSON, or an ini file, such as "
        "the one in docs/logs.md, or leave --log-config (and log_config in config.properties) out for the default log"
    )


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LogConfigError, match=r"--log-config file not found: .*absent\.yaml"):
        set_up_logging(tmp_path / "absent.yaml", io.StringIO())


# -- access log --


@dataclass
class Call:
    client: str = "1.2.3.4:5"
    key_name: str = ""
    target: str = "/predictions/m?x=1"
    method: str = "POST"
    protocol: str = "HTTP/1.1"
    id: str = "r1"
    started: float = 0.0


def test_access_lines_are_gathered() -> None:
    written: list[str] = []

    async def use() -> None:
        access = AccessLog(written.append)
        access.write(Call(), 200)
        access.write(Call(id="r2"), 404)
        assert written == []
        access.flush()

    asyncio.run(use())
    entries = [json.loads(line) for line in "".join(written).splitlines()]
    assert [(entry["request_id"], entry["status"], entry["path"]) for entry in entries] == [
        ("r1", 200, "/predictions/m?x=1"),
        ("r2", 404, "/predictions/m?x=1"),
    ]
    assert len(written) == 1


def test_access_lines_of_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    access = AccessLog(lambda text: None, logger=logging.getLogger("msx.access"))
    with caplog.at_level(logging.INFO):
        access.write(Call(), 200)
    assert caplog.records[0].request_id == "r1"  # type: ignore[attr-defined]
    assert caplog.messages[0].startswith('/1.2.3.4:5 "POST /predictions/m?x=1 HTTP/1.1" 200 ')
