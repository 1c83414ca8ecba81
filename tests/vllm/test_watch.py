"""The end of vLLM's processes, of which the worker's own end follows."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import psutil
import pytest

from msx_vllm import watch
from msx_vllm.watch import EngineWatch

NAMED = "import ctypes, sys; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); print(flush=True); input()"
"""PR_SET_NAME gives a process the name that setproctitle gives vLLM's."""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="ends of processes are seen on Linux")


def named(name: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-S", "-c", NAMED, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_the_end_of_one_of_vllms_processes_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch, "EVERY", 600)
    monkeypatch.setattr(watch, "LAST_WORDS", 0)
    engine, mate, other = named("VLLM::Worker_0"), named("VLLM::Engine"), named("other")

    async def until_the_end() -> int:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(os, "_exit", ended.set_result)
        watched = EngineWatch(lambda: False)
        assert len(watched._processes) == 2
        end(other)
        end(engine)
        return await ended

    assert asyncio.run(until_the_end()) == 1
    assert mate.wait() == -signal.SIGKILL
    mate.communicate()
    assert caplog.messages == [
        f"the worker ends and will be restarted because of vLLM: its process VLLM::Worker_0 (pid {engine.pid}) has "
        "ended; its log says why"
    ]


def test_an_orderly_end_is_not_watched() -> None:
    engine = named("VLLM::Engine")

    async def begin_and_stop() -> None:
        before = psutil.Process().num_fds()
        watched = EngineWatch(lambda: False)
        assert psutil.Process().num_fds() == before + 1
        watched.stop()
        assert psutil.Process().num_fds() == before

    asyncio.run(begin_and_stop())
    end(engine)
