from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from msx_backend.async_loop import AsyncLoop
from msx_protocol import Dropped, encode_frame
from tests.backend.harness import assert_a_deserted_stream_is_closed, lines_of, serving, wait_until

MEETS = """
import asyncio
here, all_here = [], None
async def handle(data, context):
    global all_here
    all_here = all_here or asyncio.Event()
    here.append(data[0]["body"])
    if len(here) == 5:
        all_here.set()
    await all_here.wait()
    return [data[0]["body"]]
"""


def test_many_requests_run_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, MEETS) as worker:
        worker.predict("a", "b")
        for body in "cde":
            worker.predict(body)
        assert worker.receive_all(5) == {n + 1: [body.encode(), True] for n, body in enumerate("abcde")}


def test_a_stream(tmp_path: Path) -> None:
    with serving(tmp_path, "stream_async") as worker:
        worker.predict({"count": 2})
        assert worker.receive_all(1) == {1: [b"1\n", b"2\n", b"", True]}


def test_a_failure(tmp_path: Path) -> None:
    with serving(tmp_path, "async def handle(data, context):\n    return [1 / int(data[0]['body'])]\n") as worker:
        worker.predict("0")
        worker.predict("2")
        seen = worker.receive_all(2)
    assert seen[1][0].message == "Prediction failed: ZeroDivisionError: division by zero"
    assert seen[2] == [b"0.5", True]


def test_a_handler_that_cancels_itself_is_answered(tmp_path: Path) -> None:
    code = "import asyncio\nasync def handle(data, context):\n    raise asyncio.CancelledError\n"
    with serving(tmp_path, code) as worker:
        worker.predict("x")
        assert worker.receive_all(1)[1][0].status == 503


def test_a_cancel_in_the_middle(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "async_echo") as worker:
        worker.predict({"seconds": 600, "mark": str(mark)})
        wait_until(lambda: lines_of(mark) == ["started"])
        worker.cancel(1)
        assert worker.receive() == (Dropped(1), b"")
        assert lines_of(mark) == ["started", "cancelled"]
        worker.predict({"seconds": 0})
        assert worker.receive_all(1)[2][1] is True


def test_a_cancel_before_the_start(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "async_echo") as worker:
        worker.cancel(1)
        worker.predict({"mark": str(mark)})
        assert worker.receive() == (Dropped(1), b"")
        assert not mark.exists()


def test_a_deserted_stream_is_closed(tmp_path: Path) -> None:
    assert_a_deserted_stream_is_closed(tmp_path, "stream_async")


def test_a_second_cancel_does_not_disturb_the_clean_up(tmp_path: Path) -> None:
    code = """
import asyncio, os
async def handle(data, context):
    folder = data[0]["body"]
    try:
        open(f"{folder}/started", "w").close()
        await asyncio.Event().wait()
    finally:
        open(f"{folder}/cleaning", "w").close()
        while not os.path.exists(f"{folder}/go"):
            await asyncio.sleep(0.01)
        open(f"{folder}/cleaned", "w").close()
"""
    with serving(tmp_path, code) as worker:
        worker.predict(str(tmp_path))
        wait_until((tmp_path / "started").exists)
        worker.cancel(1)
        wait_until((tmp_path / "cleaning").exists)
        worker.cancel(1)
        (tmp_path / "go").touch()
        assert worker.receive() == (Dropped(1), b"")
        assert (tmp_path / "cleaned").exists()


def test_blocking_calls_share_the_one_model_thread(tmp_path: Path) -> None:
    code = """
import threading
async def handle(data, context):
    return [await context.run(lambda: threading.current_thread().name)]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("a", "b", "c")
        assert worker.receive_all(3) == {n: [b"model_0", True] for n in (1, 2, 3)}


def test_drain_finishes_what_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "async_echo") as worker:
        worker.predict({"seconds": 0.1, "mark": str(mark)})
        assert worker.drain() == 0
        assert worker.receive_all(1)[1][1] is True
    assert lines_of(mark) == ["started", "done"]


def test_drain_closes_the_handler_on_its_own_loop(tmp_path: Path) -> None:
    code = """
import asyncio
loops = []
async def initialize(context): loops.append(asyncio.get_running_loop())
async def handle(data, context): return ["x"]
async def close():
    loops.append(asyncio.get_running_loop())
    open("same", "w").write(str(loops[0] is loops[1]))
"""
    with serving(tmp_path, code) as worker:
        assert worker.drain() == 0
        assert (worker.cwd / "same").read_text() == "True"


def test_a_blocked_loop_is_logged_with_the_handlers_line(tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = """
import os, time
async def handle(data, context):
    while not os.path.exists(data[0]["body"]):
        time.sleep(0.01)
    return ["unblocked"]
"""
    with serving(tmp_path, code) as worker:
        worker.ping()
        worker.predict(str(go))
        wait_until(worker.logged)
        go.touch()
        assert worker.receive_all(1) == {1: [b"unblocked", True]}
        (entry,) = worker.logged()
    assert entry["level"] == "WARNING"
    assert "blocks its event loop for more than 200 ms at" in entry["message"]
    assert f"{tmp_path}/model/h.py:" in entry["message"]


@pytest.mark.parametrize("running", [False, True])
def test_a_broken_frame_ends_the_worker(tmp_path: Path, running: bool) -> None:
    with serving(tmp_path, "async_echo") as worker:
        if running:
            worker.predict({"seconds": 600})
        worker.data.sendall(encode_frame(Dropped(1)))
        assert worker.exit_status() == 1


def test_the_loop_is_woken_for_other_threads_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies of its own tasks leave at the end of the turn, without the two system calls of a wake-up."""

    async def scene() -> None:
        running, woken, called = asyncio.get_running_loop(), list[Any](), list[str]()
        wake = running.call_soon_threadsafe

        def note(call: Any) -> None:
            woken.append(call)
            wake(call)

        monkeypatch.setattr(running, "call_soon_threadsafe", note)
        served = AsyncLoop((None,) * 6, None)  # type: ignore[arg-type]
        served._call_soon(lambda: called.append("own"))
        assert (called, woken) == ([], [])
        await asyncio.sleep(0)
        assert (called, woken) == (["own"], [])
        here = asyncio.Event()
        thread = threading.Thread(target=served._call_soon, args=(here.set,))
        thread.start()
        await here.wait()
        thread.join()
        assert woken == [here.set]

    asyncio.run(scene())


@pytest.mark.parametrize(("wanted", "module"), [("True", "uvloop"), ("False", "asyncio.unix_events")])
def test_a_handler_may_ask_for_uvloop(tmp_path: Path, wanted: str, module: str) -> None:
    code = f"""
import asyncio
from msx_sdk import Handler
class Own(Handler):
    uses_uvloop = {wanted}
    async def handle(self, data, context):
        return [type(asyncio.get_running_loop()).__module__]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("x")
        assert worker.receive_all(1) == {1: [module.encode(), True]}
