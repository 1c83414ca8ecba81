"""The event stream: all parts first, then what changes, for as long as the key is good."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.apis.console import hub
from msx_frontend.apis.console.hub import Hub
from tests.frontend.apis.console.consoles import events, open_console
from tests.frontend.harness import until
from tests.loops import run


def test_a_stream_has_all_parts_then_what_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "EVERY", 0.01)

    async def test() -> None:
        async with open_console(tmp_path) as opened:
            await opened.harness.register("m")
            stream = opened.stream()
            await stream.until_chunks(1)
            assert stream.headers["content-type"] == "text/event-stream"
            name, whole = events(stream)[0]
            assert name == "all"
            assert {"server", "devices", "cluster", "version m 1.0"} <= whole["set"].keys()
            assert whole["set"]["version m 1.0"]["workers"][0]["status"] == "READY"
            await opened.harness.register("n")
            await opened.harness.management.unregister("m", None)

            def told() -> bool:
                changes = [value for event, value in events(stream) if event == "change"]
                return any("version n 1.0" in one["set"] for one in changes) and any(
                    "version m 1.0" in one["gone"] for one in changes
                )

            await until(told)
            stream.leave()
            await until(lambda: not opened.console.hub.watched)

    run(test())


def test_nothing_runs_while_no_console_is_open(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_console(tmp_path) as opened:
            assert not opened.console.hub.watched
            first, second = opened.stream(), opened.stream()
            await first.until_chunks(1)
            await second.until_chunks(1)
            first.leave()
            await asyncio.sleep(0)
            assert opened.console.hub.watched
            second.leave()
            await until(lambda: not opened.console.hub.watched)

    run(test())


def test_a_key_that_is_not_good_any_more_ends_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "CHECKED", 0.01)

    async def test() -> None:
        async with open_console(tmp_path) as opened:
            stream = opened.stream()
            await stream.until_chunks(1)
            opened.keys.good = False
            await stream.finish()
            assert events(stream)[-1] == ("refused", {"message": "The key has expired."})

    run(test())


def test_streams_end_with_the_server(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_console(tmp_path) as opened:
            stream = opened.stream()
            await stream.until_chunks(1)
            await opened.console.close()
            await stream.finish()

    run(test())


def test_consoles_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_CONSOLES", 1)

    async def test() -> None:
        async with open_console(tmp_path) as opened:
            stream = opened.stream()
            await stream.until_chunks(1)
            refused = await opened.get("events")
            assert refused.status == 503
            assert "close one" in refused.json["message"]
            stream.leave()
            await until(lambda: not opened.console.hub.watched)
            again = opened.stream()
            await again.until_chunks(1)

    run(test())


def test_a_slow_browser_gets_all_parts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_WAITING", 100)
    value = {"n": "a" * 60}

    async def test() -> None:
        shown = Hub(_Parts(value))
        feed = shown.open()
        stream = shown.events(feed, lambda: None)
        assert b"event: all" in await anext(stream)
        for number in range(5):
            value["n"] = str(number) * 60
            await shown.look()
        assert feed.size == 0
        behind = await anext(stream)
        assert b"event: all" in behind
        assert b"4" * 60 in behind
        await shown.close()
        assert [one async for one in stream] == []

    run(test())


class _Parts:
    def __init__(self, value: Any) -> None:
        self._value = value

    def __iter__(self) -> Any:
        yield "part", self._value
