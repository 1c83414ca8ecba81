"""One line a request, written in gathers."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from dataclasses import dataclass, field

import pytest

from msx_frontend.access_log import AccessLog
from tests.unit.frontend.jobs import run


@dataclass
class Call:
    client: str = "10.0.0.1:4711"
    target: str = "/predictions/m?x=1"
    method: str = "POST"
    id: str = "id-1"
    protocol: str = "HTTP/1.1"
    started: float = field(default_factory=time.monotonic)


def written(*statuses: int, as_json: bool = False) -> list[str]:
    """What is written, by each write."""
    texts: list[str] = []

    async def test() -> None:
        log = AccessLog(texts.append, as_json=as_json)
        for status in statuses:
            log.write(Call(), status)
        log.flush()

    run(test())
    return texts


def test_a_line_as_torchserve_writes_it_and_the_id() -> None:
    (text,) = written(200)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[INFO   \] access - /10\.0\.0\.1:4711 "
        r'"POST /predictions/m\?x=1 HTTP/1\.1" 200 \d+\.\d \[id-1\]\n',
        text,
    )


def test_a_line_as_json() -> None:
    (text,) = written(404, as_json=True)
    entry = json.loads(text)
    assert entry.pop("time") == pytest.approx(time.time(), abs=60)
    assert entry.pop("ms") >= 0
    assert entry == {
        "level": "INFO",
        "logger": "msx.access",
        "client": "10.0.0.1:4711",
        "method": "POST",
        "path": "/predictions/m?x=1",
        "status": 404,
        "request_id": "id-1",
    }
    assert text.endswith("\n")


def test_many_lines_are_one_write() -> None:
    (text,) = written(200, 404, 500)
    assert [line.split('" ')[1].split()[0] for line in text.splitlines()] == ["200", "404", "500"]


def test_nothing_is_no_write() -> None:
    assert written() == []


def test_lines_are_written_soon_and_only_once() -> None:
    texts: list[str] = []

    async def test() -> None:
        log = AccessLog(texts.append, as_json=False)
        for expected in (1, 2):
            log.write(Call(), 200)
            assert len(texts) == expected - 1
            while len(texts) < expected:
                await asyncio.sleep(0.01)
        log.flush()
        log.flush()

    run(test())
    assert len(texts) == 2


def test_a_logger_gets_each_line_instead(caplog: pytest.LogCaptureFixture) -> None:
    texts: list[str] = []
    caplog.set_level(logging.INFO, "access")
    AccessLog(texts.append, as_json=False, logger=logging.getLogger("access")).write(Call(), 200)
    assert texts == []
    (record,) = caplog.records
    assert record.getMessage().startswith('/10.0.0.1:4711 "POST /predictions/m?x=1 HTTP/1.1" 200 ')
    assert record.__dict__["request_id"] == "id-1"
