"""The process of one rank, with real workers."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.supervision import session
from msx_frontend.workers import local_rank, shared_files
from msx_frontend.workers.launcher import ExitStatus
from msx_frontend.workers.local import LocalLauncher
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.rank import Rank
from msx_protocol import (
    Chunk,
    CompleteReplies,
    Drain,
    Loaded,
    LoadProgress,
    MetricSample,
    Ping,
    Pong,
    Predict,
    ToFrontend,
    encode_frame,
)
from tests.backend.harness import request
from tests.descriptors import open_descriptors
from tests.frontend.workers.handlers import spec_of
from tests.loops import run
from tests.processes import is_alive

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


class Bench:
    """A rank that runs here, and all that it tells in the order in which it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = LocalLauncher(folder / "run")
        self.told: list[Any] = []
        self.pongs: list[Pong] = []
        self.changed = asyncio.Event()

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        self.told.append((message, body))
        self.changed.set()

    def ponged(self, rank: int, pong: Pong) -> None:
        self.pongs.append(pong)
        self.changed.set()

    def printed(self, rank: int, sample: MetricSample) -> None: ...

    def exited(self, rank: int, status: ExitStatus) -> None:
        self.told.append(status.code)
        self.changed.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def load(self, code: str) -> None:
        spec = spec_of(self.folder, code)
        self.rank = Rank(spec.load, 0, self)
        (self.launched,) = await self.launcher.launch(spec)
        self.work_dir = self.launched.work_dir
        self.rank.begin(self.launched)
        await self.rank.connect()
        self.rank.load()
        await self.until(lambda: self.told and not _is_progress(self.told[-1]))
        assert isinstance(self.messages[-1][0], Loaded), self.told

    def predict(self, body: Any = b"") -> None:
        head, data = request(1, body)
        self.rank.data.write(encode_frame(Predict([head]), data))

    @property
    def messages(self) -> list[tuple[ToFrontend, bytes]]:
        return [entry for entry in self.told if isinstance(entry, tuple)]

    @property
    def chunks(self) -> list[bytes]:
        return [body for message, body in self.messages if isinstance(message, CompleteReplies | Chunk)]

    @property
    def exit_codes(self) -> list[int]:
        return [entry for entry in self.told if isinstance(entry, int)]

    async def answer(self) -> bytes:
        await self.until(lambda: self.chunks)
        return self.chunks[0]


def _is_progress(told: Any) -> bool:
    return isinstance(told, tuple) and isinstance(told[0], LoadProgress)


@asynccontextmanager
async def rank_of(folder: Path, code: str) -> AsyncIterator[Bench]:
    """A rank that has loaded `code`; killed at the end, if it still lives."""
    bench = Bench(folder)
    try:
        await bench.load(code)
        yield bench
    finally:
        bench.rank.kill()
        await bench.rank.gone()


def on(code: str, tmp_path: Path, loop: str, test: Callable[[Bench], Any]) -> None:
    async def call() -> None:
        async with rank_of(tmp_path, code) as bench:
            await test(bench)

    run(call(), loop)


@LOOPS
def test_a_worker_from_start_to_end(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        assert bench.rank.status.pid == bench.launched.pid
        assert bench.rank.status.memory > 1 << 20
        assert bench.work_dir.is_dir()
        bench.predict(b"hello")
        assert await bench.answer() == b"hello"
        bench.rank.control.write(encode_frame(Ping(5)))
        await bench.until(lambda: bench.pongs)
        assert bench.pongs[0].sequence == 5
        bench.rank.data.write(encode_frame(Drain()))
        await bench.rank.gone()
        assert bench.exit_codes == [0]
        assert not bench.work_dir.exists()
        assert bench.rank.status.memory == 0
        bench.rank.kill()  # does nothing: another process may have the number by now

    on("echo", tmp_path, loop, test)


@LOOPS
def test_it_works_in_a_folder_of_its_own(tmp_path: Path, loop: str) -> None:
    code = """
import os
def handle(data, context):
    if data is None:
        return
    open("left", "w").write("x")
    return [os.getcwd()]
"""

    async def test(bench: Bench) -> None:
        bench.predict()
        assert await bench.answer() == str(bench.work_dir).encode()
        assert (bench.work_dir / "left").exists()

    on(code, tmp_path, loop, test)
    assert list((tmp_path / "run").iterdir()) == []


def test_its_soft_limit_of_descriptors_is_not_the_raised_one(tmp_path: Path) -> None:
    code = """
import resource
def handle(data, context):
    return None if data is None else [str(resource.getrlimit(resource.RLIMIT_NOFILE))]
"""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    async def test(descriptors: int) -> str:
        bench = Bench(tmp_path)
        bench.launcher = LocalLauncher(tmp_path / "run", descriptors)
        await bench.load(code)
        try:
            bench.predict()
            return (await bench.answer()).decode()
        finally:
            bench.rank.kill()
            await bench.rank.gone()

    assert run(test(500)) == str((500, hard))


@LOOPS
def test_kill_takes_the_grandchildren_too(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        bench.predict()
        child = int(await bench.answer())
        assert is_alive(child)
        bench.rank.kill()
        bench.rank.kill()
        await bench.rank.gone()
        assert bench.exit_codes == [-signal.SIGKILL]
        while is_alive(child):
            await asyncio.sleep(0.001)

    on("leak", tmp_path, loop, test)


@LOOPS
def test_one_that_is_killed_ends_where_nobody_waits_for_it(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        bench.launched.kill()
        waits = asyncio.create_task(bench.launched.gone())
        await asyncio.sleep(0)
        waits.cancel()
        await bench.rank.gone()
        assert bench.exit_codes == [-signal.SIGKILL]

    on("echo", tmp_path, loop, test)


@LOOPS
@pytest.mark.parametrize("how", ["it is handed over", "the loop ends"])
def test_one_that_is_killed_does_not_stay_stopped(tmp_path: Path, loop: str, how: str) -> None:
    """A frontend that takes it over would wait for it."""

    async def call() -> LocalRank:
        (launched,) = await LocalLauncher(tmp_path / "run").launch(spec_of(tmp_path, "echo"))
        for stream in (launched.data, launched.control, launched.stdout, launched.stderr):
            stream.close()
        launched.kill()
        if how == "it is handed over":
            launched.hand_over()
        return launched

    launched = run(call(), loop)
    ended = os.pidfd_open(launched.pid)
    assert select.select([ended], [], [], 60)[0]
    os.close(ended)
    assert launched._process.reap() == -signal.SIGKILL


@LOOPS
def test_one_that_has_not_begun_is_not_stopped_before_it_is_killed(tmp_path: Path, loop: str) -> None:
    """It would stay so where its frontend is killed as well: it does not end with its parent yet."""
    (python := tmp_path / "python").write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)

    async def call() -> None:
        (launched,) = await LocalLauncher(tmp_path / "run").launch(spec_of(tmp_path, "echo", python=str(python)))
        launched.kill()
        ended = os.pidfd_open(launched.pid)
        try:
            assert select.select([ended], [], [], 60)[0]  # this loop does nothing more meanwhile
        finally:
            os.close(ended)
            await launched.gone()

    run(call(), loop)


@LOOPS
def test_grandchildren_do_not_outlive_a_worker_that_ends_by_itself(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        bench.predict()
        child = int(await bench.answer())
        bench.rank.data.write(encode_frame(Drain()))
        await bench.rank.gone()
        while is_alive(child):
            await asyncio.sleep(0.001)

    on("leak", tmp_path, loop, test)


@LOOPS
@pytest.mark.parametrize(
    ("way", "code"), [("exit", 3), ("abort", -signal.SIGABRT), ("segfault", -signal.SIGSEGV), ("kill", -signal.SIGKILL)]
)
def test_how_a_worker_ended(tmp_path: Path, loop: str, way: str, code: int) -> None:
    async def test(bench: Bench) -> None:
        bench.predict(way)
        await bench.rank.gone()
        assert bench.exit_codes == [code]

    on("crash", tmp_path, loop, test)


@LOOPS
def test_the_end_is_told_after_all_that_was_said(tmp_path: Path, loop: str) -> None:

    async def test(bench: Bench) -> None:
        bench.predict()
        await bench.rank.gone()
        assert len(bench.chunks) == 50
        assert bench.told[-1] == 7
        assert bench.rank.crash_cause == "goodbye"


HOLDERS = {
    "its stdout": "subprocess.Popen(['sleep', '600'], start_new_session=True).pid",
    "its sockets": "subprocess.Popen(['sleep', '600'], start_new_session=True, close_fds=False).pid",
    "all": "fork()",
}


@LOOPS
@pytest.mark.parametrize("holds", HOLDERS)
def test_a_grandchild_of_another_session_does_not_hold_up_the_end(tmp_path: Path, loop: str, holds: str) -> None:
    code = f"""
import os, signal, subprocess
def fork():
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.write(tell, b"x")
        signal.pause()
    os.read(ready, 1)
    return pid
def handle(data, context):
    yield [str({HOLDERS[holds]})]
    os._exit(4)
"""

    async def test(bench: Bench) -> None:
        bench.predict()
        child = int(await bench.answer())
        try:
            await bench.rank.gone()
            assert bench.exit_codes == [4]
            assert is_alive(child)
        finally:
            os.kill(child, signal.SIGKILL)

    on(code, tmp_path, loop, test)


@LOOPS
def test_the_last_line_is_the_last_that_says_something(tmp_path: Path, loop: str) -> None:
    code = """
import os
def handle(data, context):
    if data is None:
        return  # once at the start, as in TorchServe
    os.write(2, b"why it ended\\n\\n   \\n")
    os.write(1, b"to stdout\\n")
    os._exit(1)
"""

    async def test(bench: Bench) -> None:
        assert bench.rank.crash_cause == ""
        bench.predict()
        await bench.rank.gone()
        assert bench.rank.crash_cause == "why it ended"

    on(code, tmp_path, loop, test)


@LOOPS
def test_a_worker_that_breaks_the_protocol_is_killed(tmp_path: Path, loop: str) -> None:
    code = """
import os, sys, threading
(number,) = (word.removeprefix("--data-fd=") for word in sys.orig_argv if word.startswith("--data-fd="))
def handle(data, context):
    if data is None:
        return
    os.write(int(number), b"\\xff" * 64)  # a worker whose control socket is closed may end by itself
    threading.Event().wait()
"""

    async def test(bench: Bench) -> None:
        bench.predict()
        await bench.rank.gone()
        assert bench.exit_codes == [-signal.SIGKILL]

    on(code, tmp_path, loop, test)


# -- that no process can be started --


def launch_fails(tmp_path: Path, python: str = sys.executable) -> OSError:
    """The error; asserts that nothing is left."""
    spec = spec_of(tmp_path, "echo", python=python)

    async def call() -> OSError:
        before = open_descriptors()
        with pytest.raises(OSError, match=r"No such file|Not a directory|File exists") as caught:
            await LocalLauncher(tmp_path / "run").launch(spec)
        assert not open_descriptors() - before
        return caught.value

    error = run(call())
    assert not (tmp_path / "run").is_dir() or not os.listdir(tmp_path / "run")
    return error


def test_no_interpreter(tmp_path: Path) -> None:
    assert isinstance(launch_fails(tmp_path, "/nowhere/python"), FileNotFoundError)


@pytest.mark.parametrize(("name", "succeed"), [("os.pipe", 0), ("os.pipe", 1), ("socket.socketpair", 1)])
def test_too_many_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, succeed: int) -> None:
    module, _, function = name.partition(".")
    real = getattr(sys.modules[module], function)
    calls: list[Any] = []

    def limited() -> Any:
        if len(calls) == succeed:
            raise OSError(errno.EMFILE, "Too many open files")
        calls.append(real())
        return calls[-1]

    spec = spec_of(tmp_path, "echo")

    async def call() -> None:
        before = open_descriptors()
        monkeypatch.setattr(name, limited)
        with pytest.raises(OSError, match="Too many open files"):
            await LocalLauncher(tmp_path / "run").launch(spec)
        monkeypatch.setattr(name, real)
        calls.clear()
        assert not open_descriptors() - before
        assert os.listdir(tmp_path / "run") == []

    run(call())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    assert isinstance(launch_fails(tmp_path), (NotADirectoryError, FileExistsError))


SHARING = """
import multiprocessing, subprocess, sys, time
from multiprocessing.shared_memory import SharedMemory

CHILD = (
    "import sys, time; from multiprocessing.shared_memory import SharedMemory; "
    "memory = SharedMemory(sys.argv[1]); print(flush=True); time.sleep(600)"
)

def initialize(context):
    global memory, lock, child
    memory = SharedMemory(create=True, size=4096)
    lock = multiprocessing.get_context("spawn").Lock()  # the C library maps it by a name that it takes away then
    child = subprocess.Popen([sys.executable, "-c", CHILD, memory.name], stdout=subprocess.PIPE)
    child.stdout.read(1)

def handle(data, context):
    return [memory.name] * len(data)
"""


HOW = ("the worker alone is killed", "the whole session is killed")


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine's resource tracker remove what it knows."""
    monkeypatch.setattr(session, "PATIENCE", 60.0)


async def killed(bench: Bench, how: str) -> None:
    """Kill it by one of HOW. Returns when it is gone."""
    if how == HOW[0]:
        os.kill(bench.launched.pid, signal.SIGKILL)
    else:
        bench.launched.kill()
    await bench.rank.gone()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("how", HOW)
def test_shared_memory_goes_with_the_processes_that_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Also what multiprocessing's resource tracker, which is killed with them, has not removed."""
    monkeypatch.setattr(local_rank, "SHARED_EVERY", 0.01)
    looked, seen = shared_files.noted, set[Path]()

    async def test(bench: Bench) -> None:
        loop, found = asyncio.get_running_loop(), asyncio.Event()

        def noted(session: int, before: set[Path]) -> set[Path]:
            seen.update(looked(session, before))
            if len(seen) == 2:
                loop.call_soon_threadsafe(found.set)
            return seen

        monkeypatch.setattr(local_rank, "noted", noted)
        await found.wait()
        assert all(file.exists() for file in seen)
        await killed(bench, how)
        assert not any(file.exists() for file in seen)

    on(SHARING, tmp_path, "asyncio", test)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("how", HOW)
def test_shared_memory_that_was_just_made_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Nobody has looked since. The resource tracker knows it, and is given time to remove it."""
    monkeypatch.setattr(local_rank, "noted", lambda session, before: set[Path]())

    async def test(bench: Bench) -> None:
        made = await asyncio.to_thread(shared_files.shared_files, bench.launched.pid)
        assert len(made) == 2
        await killed(bench, how)
        assert not any(file.exists() for file in made)

    on(SHARING, tmp_path, "asyncio", test)
