"""One line a request, written in gathers."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from dataclasses import dataclass, field

import pytest

from msx_frontend.logs.access_lines import LONGEST_TARGET, MOST_DURATIONS, MOST_REQUESTS, AccessLines
from msx_frontend.logs.access_log import FLUSH_AT, AccessLog
from msx_net.logged_calls import Entry
from tests.loops import run


@dataclass
class Call:
    client: str = "10.0.0.1:4711"
    key_name: str = ""
    target: str = "/predictions/m?x=1"
    method: str = "POST"
    id: str = "id-1"
    protocol: str = "HTTP/1.1"
    started: float = field(default_factory=time.monotonic)


def written(*statuses: int) -> list[str]:
    """Text of each write."""
    texts: list[str] = []

    async def test() -> None:
        log = AccessLog(texts.append)
        for status in statuses:
            log.write(Call(), status)
        log.flush()

    run(test())
    return texts


def test_a_line_as_json() -> None:
    (text,) = written(404)
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
    assert [json.loads(line)["status"] for line in text.splitlines()] == [200, 404, 500]


def test_nothing_to_write_writes_nothing() -> None:
    assert written() == []


def test_lines_are_written_soon_and_only_once() -> None:
    texts: list[str] = []

    async def test() -> None:
        log = AccessLog(texts.append)
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
    AccessLog(texts.append, logger=logging.getLogger("access")).write(Call(), 200)
    assert texts == []
    (record,) = caplog.records
    assert record.getMessage().startswith('/10.0.0.1:4711 "POST /predictions/m?x=1 HTTP/1.1" 200 ')
    assert record.__dict__["request_id"] == "id-1"


def test_many_lines_do_not_wait_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.logs.access_log.FLUSH_AFTER", 1e6)
    texts: list[str] = []
    count = 2 * FLUSH_AT + 3

    async def test() -> None:
        log = AccessLog(texts.append)
        for number in range(count):
            log.write(Call(id=f"id-{number}"), 200)
            await asyncio.sleep(0)
        assert len(texts) == 2
        log.flush()

    run(test())
    ids = [json.loads(line)["request_id"] for line in "".join(texts).splitlines()]
    assert ids == [f"id-{number}" for number in range(count)]


def test_what_cannot_be_written_does_not_fail_the_request() -> None:
    errors: list[object] = []

    def broken(text: str) -> None:
        raise OSError("no space")

    async def test() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context["exception"]))
        log = AccessLog(broken)
        for _ in range(FLUSH_AT):
            log.write(Call(), 200)
        await asyncio.sleep(0)

    run(test())
    assert [str(error) for error in errors] == ["no space"]


def entry(
    at: float, seconds: float = 0.0, target: str = "/x", client: str = "c:1", id: str = "i", key: str = ""
) -> Entry:
    return (client, key, "GET", target, "HTTP/1.1", 200), id, at - seconds, at


def test_the_same_for_the_console_and_the_file() -> None:
    now = time.monotonic()
    moments = [now - 100, now - 99.9995, now - 98.7654, now - 1]
    epoch = time.time() - now
    console, file = AccessLines()([entry(at, 1.234563) for at in moments])
    entries = [json.loads(line) for line in console.splitlines()]
    assert [entry["time"] for entry in entries] == pytest.approx([at + epoch for at in moments], abs=0.1)
    assert [entry["ms"] for entry in entries] == [1234.56] * 4
    lines = file.splitlines()
    assert [re.sub(".*HTTP/1.1. ", "", line) for line in lines] == ["200 1235"] * 4
    stamps = [line.partition(" ")[0] for line in lines]
    assert stamps == sorted(stamps)
    assert [stamp[-3:] for stamp in stamps] == [f"{entry['time']:.3f}"[-3:] for entry in entries]


def test_odd_texts_stay_json() -> None:
    odd = '"\\ \n\x01é'
    console, _ = AccessLines()([entry(1.0, target=odd, client=odd, id=odd)])
    seen = json.loads(console)
    assert (seen["path"], seen["client"], seen["request_id"]) == (odd, odd, odd)
    assert console.count("\n") == 1


def test_what_is_remembered_is_bounded() -> None:
    lines = AccessLines()
    console, _ = lines([entry(float(n), n / 1e4, target=f"/{n}") for n in range(MOST_DURATIONS + MOST_REQUESTS + 2)])
    assert [json.loads(line)["path"] for line in console.splitlines()[-2:]] == ["/6144", "/6145"]
    assert len(lines._requests) == 2
    assert len(lines._durations) <= MOST_DURATIONS
    lines([entry(1.0, target="/" + LONGEST_TARGET * "x")])
    assert len(lines._requests) == 2, "long ones are not remembered"


def test_the_name_of_a_key_stands_behind_the_client() -> None:
    console, file = AccessLines()([entry(1.0, key="team-a"), entry(1.0)])
    named, unnamed = file.splitlines()
    assert '/c:1 team-a "GET /x HTTP/1.1" 200 0' in named
    assert '/c:1 "GET /x HTTP/1.1" 200 ' in unnamed
    assert [json.loads(line).get("key") for line in console.splitlines()] == ["team-a", None]
