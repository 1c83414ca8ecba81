"""Batches and files of all keys, as operators see them, and their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_frontend.apis.openai.late_management import batches_management
from msx_frontend.batches.runner import Batches
from msx_frontend.metrics import ServerMetrics
from tests.frontend.batches.serving import Served, jsonl, row, serving
from tests.frontend.generation.speaker import say, words
from tests.frontend.keys.some import some_key
from tests.loops import run, until
from tests.net.http.client import FakeAccessLog, begin
from tests.net.http.exchanges import exchange_of
from tests.prometheus import samples

KEYS = {"Bearer ann": some_key("ann"), "Bearer bob": some_key("bob")}
ANN, BOB = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))


async def shown(metrics: ServerMetrics) -> dict[tuple[str, str], float]:
    """Values by name and state."""
    page = (await metrics.expose()).decode()
    return {(name, labels.get("state", "")): value for name, labels, value in samples(page)}


class Operator:
    def __init__(self, batches: Batches | None) -> None:
        self._app = exchange_of(batches_management(batches), log=FakeAccessLog())

    async def ask(self, path: str, method: str = "GET") -> Any:
        return await begin(self._app, method, f"/management/{path}").finish()


async def begun(served: Served, key: dict[str, str], *rows: Any) -> str:
    file = await served.upload(jsonl(*rows), **key)
    asked = {"input_file_id": file, "endpoint": "/v1/completions", "completion_window": "24h"}
    return str((await served.speaker.ask("/v1/batches", asked, **key)).json["id"])


def test_operators_see_and_cancel_all(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(
            tmp_path, check_token=lambda given: KEYS[given or ""], key_of=lambda owner: some_key(owner)
        ) as served:
            ann, bob = await begun(served, ANN, row("a")), await begun(served, BOB, row("b"))
            operator = Operator(served.batches)
            page = (await operator.ask("batches?limit=1")).json
            assert ([(one["id"], one["key"]) for one in page["data"]], page["has_more"]) == ([(bob, "bob")], True)
            page = (await operator.ask(f"batches?after={bob}")).json
            assert ([(one["id"], one["key"]) for one in page["data"]], page["has_more"]) == ([(ann, "ann")], False)
            assert (await operator.ask(f"batches/{ann}/cancel", "POST")).json["status"] == "cancelling"
            await until(lambda: ann not in served.batches._active)
            assert (await operator.ask(f"batches/{ann}")).json["status"] == "cancelled"
            files = (await operator.ask("files?order=asc&purpose=batch")).json["data"]
            assert [one["key"] for one in files] == ["ann", "bob"]
            mine, other = (one["id"] for one in files)
            assert (await operator.ask(f"files/{mine}", "DELETE")).json["deleted"]
            assert (await operator.ask(f"files/{mine}")).status == 404
            assert (await operator.ask(f"files/{other}", "DELETE")).status == 409  # bob's batch reads it
            assert "key" not in (await served.get(f"batches/{bob}", **BOB)).json

    run(test())


@pytest.mark.parametrize("path", ["batches", "batches/x", "files", "files/x"])
def test_without_batches_there_is_nothing(path: str) -> None:
    async def test() -> None:
        refused = await Operator(None).ask(path)
        assert (refused.status, "jobs=true" in refused.json["message"]) == (404, True)

    run(test())


@pytest.mark.parametrize("path", ["batches/x", "files/x"])
def test_unknown_ones(tmp_path: Path, path: str) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            assert (await Operator(served.batches).ask(path)).status == 404

    run(test())


def test_figures_are_metrics(tmp_path: Path) -> None:
    metrics = ServerMetrics()

    async def test() -> None:
        async with serving(tmp_path) as served:
            metrics.batches.show(served.batches.figures)
            served.room.places = 2
            id = await served.begun(row("one"), row("bad", {"prompt": 3}), row("two"))
            first = await served.speaker.next_job(0)
            seen = await shown(metrics)
            assert seen["msx_batches", "in_progress"] == 1
            assert (seen["msx_batch_lines", "waiting"], seen["msx_batch_lines", "running"]) == (2, 1)
            assert seen["msx_files", ""] == 1
            say(first, *words("a"))
            say(await served.speaker.next_job(1), *words("a"))
            done = await served.ended(id)
            seen = await shown(metrics)
            assert (seen["msx_batches", "in_progress"], seen["msx_batches", "completed"]) == (0, 1)
            assert (seen["msx_batch_lines", "waiting"], seen["msx_batch_lines", "running"]) == (0, 0)
            ended = [seen["msx_batch_lines_ended_total", state] for state in ("done", "failed")]
            assert ended == [2, 1]
            files = (await served.get("files")).json["data"]
            assert (seen["msx_files", ""], seen["msx_files_bytes", ""]) == (3, sum(one["bytes"] for one in files))
            assert done["status"] == "completed"

    run(test())
