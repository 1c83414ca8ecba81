"""How many worker processes a server has at most, whichever call asks for more, and how many start at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.server import children, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

WORDS = "this server may have 3 worker processes (max_worker_processes); ask for fewer workers, or raise it."


def test_the_processes_of_a_server(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("echo", store, model="huge", config="minWorkers: 1280\n")
    pack_service("echo", store)
    pack_service("echo", store, model="other")
    with run_server(tmp_path, properties="max_worker_processes=3\nparallel_starts=1\n") as server:
        reply = server.register(Path("huge.mar"))
        assert (reply.status_code, reply.json()["type"]) == (400, "BadRequestException")
        assert reply.json()["message"] == f"huge:1.0 cannot have 1280 workers: {WORDS}"
        assert server.management.get("/models/huge").status_code == 404
        assert server.register(Path("echo.mar"), initial_workers=2).status_code == 200
        for wait in ("true", "false"):
            reply = server.management.put(f"/models/echo?min_worker=5000&synchronous={wait}")
            assert (reply.status_code, WORDS in reply.json()["message"]) == (400, True)
        reply = server.register(Path("other.mar"), initial_workers=2)
        assert (reply.status_code, "1 of 2 wait for processes: other:1.0 needs" in reply.json()["status"]) == (
            202,
            True,
        )
        assert len(children(server.info["pid"])) == 3
        assert server.metric("msx_workers_waiting", model="other") == 1
        assert server.management.delete("/models/echo").status_code == 200
        wait_until(lambda: server.describe("other")["state"] == "READY", "it goes on", server.tail)
