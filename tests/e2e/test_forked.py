"""Servers and workers are forked where they can be, and are what they would be as processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.e2e.server import new_store, pack_service, run_server
from tests.processes import command_of

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("fork", [True, False])
def test_a_worker_is_its_servers_child(tmp_path: Path, fork: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/site-packages/mindspore/lib/plugin/cpu")  # as MindSpore does when imported
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", fork=fork) as server:
        (pid,) = server.worker_pids("echo")
        worker = psutil.Process(pid)
        forked = {"tests.forking_interpreter" in command_of(process) for process in (worker, server.process.pid)}
        assert worker.ppid() == server.process.pid == server.info["pid"]
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert forked == {fork and "COVERAGE_PROCESS_CONFIG" not in os.environ}
