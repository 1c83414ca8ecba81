"""Batches of a real server that is killed: each line has one result after the next start."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server, wait_until

pytestmark = pytest.mark.e2e

LINES = 200
PATH = "/v1/completions"
PROPERTIES = "jobs=true\n"


def test_a_batch_outlives_a_server_and_workers_that_are_killed(tmp_path: Path) -> None:
    pack_service("parrot", new_store(tmp_path), config="maxConcurrent: 16\njobQueueSize: 100")
    first = start_server(tmp_path, "--models", "parrot.mar", properties=PROPERTIES)
    first.wait_ready()
    id = create(first, upload(first, rows_of(prompt)))
    wait_until(lambda: completed(first, id) >= 20, "some lines are answered", first.tail)
    os.kill(first.worker_pids("parrot")[0], signal.SIGKILL)
    before = completed(first, id)
    wait_until(lambda: completed(first, id) >= min(before + 17, LINES), "lines are answered again", first.tail)
    first.process.kill()
    first.process.wait()
    first.close()
    with run_server(tmp_path, properties=PROPERTIES) as second:
        wait_until(lambda: show(second, id)["status"] == "completed", "the batch is completed", second.tail)
        assert show(second, id)["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}
        rows = results(second, show(second, id)["output_file_id"])
        assert sorted(one["custom_id"] for one in rows) == sorted(map(str, range(LINES)))
        texts = {one["custom_id"]: one["response"]["body"]["choices"][0]["text"] for one in rows}
        assert texts == {str(number): prompt(number) for number in range(LINES)}


def test_a_full_disk_refuses_uploads_and_holds_results_back(tmp_path: Path) -> None:
    """As far as a limit of the size of files goes for one: nothing is lost, and no line is there twice."""
    pack_service("parrot", new_store(tmp_path))
    with run_server(tmp_path, "--models", "parrot.mar", properties=f"{PROPERTIES}batch_share=1\n") as server:
        pid, least = server.process.pid, 1 << 20
        sent = upload(server, rows_of(lambda number: f"{number}" + "x" * 8000))
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE, (least, resource.RLIM_INFINITY))
        id = create(server, sent)
        told = f"the results of {id} wait to be written"
        wait_until(lambda: told in server.log.read_text(), "results wait", server.tail)
        refused = upload(server, b"x" * (least + 1))
        assert (refused.status_code, "cannot be written" in refused.json()["error"]["message"]) == (503, True)
        held = show(server, id)
        assert (held["status"], held["request_counts"]["failed"]) == ("in_progress", 0)
        assert 0 < held["request_counts"]["completed"] < LINES
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        wait_until(lambda: show(server, id)["status"] == "completed", "the batch is completed", server.tail)
        rows = results(server, show(server, id)["output_file_id"])
        assert sorted(one["custom_id"] for one in rows) == sorted(map(str, range(LINES)))
        assert {len(one["response"]["body"]["choices"][0]["text"]) for one in rows} == {8001, 8002, 8003}


def prompt(number: int) -> str:
    return f"pause {number}" if number % 10 == 0 else f"word {number}"


def upload(server: RunningServer, content: bytes) -> httpx.Response:
    return server.inference.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content)})


def rows_of(prompt_of: Callable[[int], str]) -> bytes:
    bodies = [{"model": "parrot", "prompt": prompt_of(number)} for number in range(LINES)]
    rows = [{"custom_id": str(n), "method": "POST", "url": PATH, "body": body} for n, body in enumerate(bodies)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def create(server: RunningServer, sent: httpx.Response) -> str:
    assert sent.status_code == 200, sent.text
    asked = {"input_file_id": sent.json()["id"], "endpoint": PATH, "completion_window": "24h"}
    made = server.inference.post("/v1/batches", json=asked)
    assert made.status_code == 200, made.text
    return str(made.json()["id"])


def show(server: RunningServer, id: str) -> dict[str, Any]:
    shown: dict[str, Any] = server.inference.get(f"/v1/batches/{id}").json()
    return shown


def completed(server: RunningServer, id: str) -> int:
    return int(show(server, id)["request_counts"]["completed"])


def results(server: RunningServer, file: str) -> list[Any]:
    return [json.loads(line) for line in server.inference.get(f"/v1/files/{file}/content").text.splitlines()]
