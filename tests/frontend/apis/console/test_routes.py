"""Requests of the page besides the stream."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from msx_core.service_errors import WorkerDied
from msx_frontend.metrics.history import FIELDS, POINTS
from tests.frontend.apis.console.consoles import open_console
from tests.loops import run
from tests.phrases import worker_died


def test_the_history_of_a_version_and_of_all(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_console(tmp_path) as opened:
            await opened.harness.register("m")
            opened.harness.submit().fail(WorkerDied("gone"))
            opened.console.sample(10)
            for path in ("history", "history?model=m&version=1.0"):
                shown = (await opened.get(path)).json
                assert tuple(shown["fields"]) == FIELDS
                assert {len(values) for values in shown["fields"].values()} == {POINTS}
                assert (shown["fields"]["requests"][-1], shown["fields"]["failed"][-1]) == (1, 1)
            assert (await opened.get("history?model=n&version=1.0")).json["fields"] == {}
            assert (await opened.get("history?model=n")).status == 400

    run(test())


def test_traces_of_all_versions_and_of_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_console(tmp_path) as opened:
            for name in ("m", "n"):
                await opened.harness.register(name)
                opened.harness.submit(name).fail(WorkerDied(f"{name} is gone"))
            every, one = (await opened.get("traces")).json, (await opened.get("traces?model=m&version=1.0")).json
            assert [trace["model"] for trace in every["failed"]] == ["n", "m"]
            assert [trace["error"] for trace in one["failed"]] == [worker_died("m is gone")]
            assert (await opened.get("traces?model=none&version=1.0")).status == 404

    run(test())


def test_lines_of_workers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test() -> None:
        async with open_console(tmp_path) as opened:
            log = logging.getLogger("msx.model")
            for text in ("one", "two"):
                log.info("%s", text, extra={"model": "m", "version": "1.0"})
            lines = (await opened.get("lines?model=m&version=1.0")).json["lines"]
            assert [line["text"] for line in lines] == ["one", "two"]
            rest = (await opened.get(f"lines?model=m&version=1.0&after={lines[0]['number']}")).json["lines"]
            assert [line["text"] for line in rest] == ["two"]

    run(test())


def test_a_model_as_it_was_understood(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_console(tmp_path) as opened:
            await opened.harness.register("m", config="batchSize: 3\n")
            shown = (await opened.get("model?model=m&version=1.0")).json
            assert "batch" in str(shown["config"]).lower()
            assert shown["manifest"]["model"]["modelName"] == "m"
            assert (await opened.get("model?model=m")).status == 400

    run(test())
