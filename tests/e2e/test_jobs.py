"""Jobs of a real server that is killed: each has its reply after the next start."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server

pytestmark = pytest.mark.e2e

JOBS = 40
PROPERTIES = "jobs=true\njobs_at_once=4\n"


def test_jobs_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    pack_service("parrot", new_store(tmp_path), config="maxConcurrent: 64\njobQueueSize: 100")
    first = start_server(tmp_path, "--models", "parrot.mar", properties=PROPERTIES)
    first.wait_ready()
    ids = [defer(first, number) for number in range(JOBS)]
    wait_until_ended(first, ids[:4])
    first.process.kill()
    first.process.wait()
    first.close()
    with run_server(tmp_path, properties=PROPERTIES) as second:
        wait_until_ended(second, ids)
        for number, id in enumerate(ids):
            late = second.inference.get(f"/jobs/{id}/result")
            now = second.inference.post("/v1/completions", json=asked(number))
            assert (late.status_code, text_of(late.json())) == (200, text_of(now.json()))


def asked(number: int) -> dict[str, Any]:
    return {"model": "parrot", "prompt": f"pause {number}"}


def defer(server: RunningServer, number: int) -> str:
    reply = server.inference.post("/v1/completions", json=asked(number), headers={"Prefer": "respond-async"})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def wait_until_ended(server: RunningServer, ids: list[str]) -> None:
    deadline = time.monotonic() + 120
    for id in ids:
        while server.inference.get(f"/jobs/{id}?wait=30").json()["state"] != "done":
            assert time.monotonic() < deadline, server.tail()


def text_of(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["text"])
