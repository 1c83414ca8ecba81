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
from msx_vllm.watch import EngineWatch, WatchedProcess
from tests.e2e.server import wait_until

NAMED = "import ctypes, sys; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); print(flush=True); input()"
"""PR_SET_NAME gives a process the name that setproctitle gives vLLM's."""
SLOW = (
    f"import threading; threading.Thread(target=threading.Event().wait).start(); {NAMED}; "
    "ctypes.CDLL(None).pthread_exit(None)"
)
"""Its first thread ends behind a line of input, and another goes on."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are named on Linux")


def named(name: str, program: str = NAMED) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-S", "-c", program, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_the_end_of_one_of_vllms_processes_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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
        watched = EngineWatch(lambda: False)
        watched.stop()
        end(engine)
        assert watched._timer.cancelled()

    asyncio.run(begin_and_stop())


def test_a_process_whose_memory_is_not_free_yet_has_ended() -> None:
    slow = named("VLLM::Worker_0", SLOW)
    assert slow.stdin is not None
    watched = WatchedProcess("VLLM::Worker_0", psutil.Process(slow.pid))
    assert not watched.has_ended()
    slow.stdin.write(b"\n")
    slow.stdin.flush()
    wait_until(watched.has_ended, "its first thread has ended", str)
    assert slow.poll() is None
    end(slow)
    assert watched.has_ended()
