"""Handlers wait while their clients are slow: a client may have 250 bytes waiting, and chunks have 100."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_protocol import Chunk, Drain, Dropped
from tests.backend.harness import Worker, lines_of, serving, wait_until

SYNC = ["generator", "send"]
ASYNC = ["coroutine", "drains"]

COUNT = 10


def order(folder: Path, **more: Any) -> dict[str, Any]:
    return {"count": COUNT, "size": 100, "dir": str(folder), **more}


def chunks(worker: Worker, count: int) -> list[tuple[int, bytes]]:
    received = [worker.receive() for _ in range(count)]
    assert all(isinstance(message, Chunk) and not message.last for message, _ in received)
    return [(message.number, body[:1]) for message, body in received]


def made(folder: Path) -> list[str]:
    return lines_of(folder / "mark")


def until_it_waits(worker: Worker, folder: Path, kind: str) -> None:
    """The third chunk uses the credit up. A handler that yields or sends has made one more by then."""
    assert chunks(worker, 3) == [(1, b"A"), (1, b"B"), (1, b"C")]
    wait_until(lambda: len(made(folder)) == (3 if kind == "drains" else 4))


@pytest.mark.parametrize("kind", SYNC + ASYNC)
def test_a_handler_waits_for_its_client(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        worker.predict(order(tmp_path))
        until_it_waits(worker, tmp_path, kind)
        worker.credit(1, 250)
        worker.credit(99, 1 << 20)
        worker.credit(1, 301)
        assert chunks(worker, 1) == [(1, b"D")]
        worker.credit(1, 1 << 20)
        rest = b"".join(worker.receive_all(1)[1][:-1])
        assert rest == b"".join(bytes([65 + n]) * 100 for n in range(4, COUNT))
        assert made(tmp_path)[-1] == "closed"


@pytest.mark.parametrize("kind", ASYNC)
def test_other_requests_go_on(tmp_path: Path, kind: str) -> None:
    """They have a credit of their own, and those that answer at once need none."""
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        worker.predict(order(tmp_path))
        until_it_waits(worker, tmp_path, kind)
        waiting = made(tmp_path)
        worker.predict({"count": 2, "size": 100})
        assert chunks(worker, 2) == [(2, b"A"), (2, b"B")]
        assert worker.receive_all(1) == {2: [b"", True]}
        assert made(tmp_path) == waiting


@pytest.mark.parametrize("kind", SYNC + ASYNC)
def test_a_cancel_ends_the_waiting(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        worker.predict(order(tmp_path))
        until_it_waits(worker, tmp_path, kind)
        worker.cancel(1)
        assert worker.receive() == (Dropped(1), b"")
        assert made(tmp_path)[3 if kind == "drains" else 4 :] == ["closed"]
        worker.predict({"count": 1, "size": 1})
        assert worker.receive_all(1) == {2: [b"A", b"", True]}


@pytest.mark.parametrize("kind", SYNC + ASYNC)
def test_the_end_of_the_server_ends_the_waiting(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        worker.predict(order(tmp_path))
        until_it_waits(worker, tmp_path, kind)
        worker.close()
        assert worker.exit_status() == 1


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_a_worker_that_is_drained_finishes_what_waits(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        worker.predict(order(tmp_path))
        until_it_waits(worker, tmp_path, kind)
        worker.send(Drain())
        worker.credit(1, 1 << 20)
        assert len(b"".join(worker.receive_all(1)[1][:-1])) == 700
        assert worker.exit_status() == 0


@pytest.mark.parametrize("kind", SYNC)
def test_a_batch_goes_on_with_its_fastest_client(tmp_path: Path, kind: str) -> None:
    """The others get what it gets; the server bounds how far they may be behind. With none of them it waits."""
    with serving(tmp_path, "long_stream", handler=f"h.py:{kind}", stream_credit=250) as worker:
        slow, fast = worker.predict(order(tmp_path), order(tmp_path))
        assert len(chunks(worker, 6)) == 6
        worker.credit(fast, 501)
        assert len(chunks(worker, 6)) == 6
        worker.ping()
        wait_until(lambda: "6" in made(tmp_path))
        assert "7" not in made(tmp_path)
        worker.cancel(fast)
        worker.credit(slow, 1 << 20)
        assert len(b"".join(body for body in worker.receive_all(2)[slow] if isinstance(body, bytes))) == 400


def test_a_send_on_the_loop_never_blocks_it(tmp_path: Path) -> None:
    code = """
async def handle(data, context):
    for n in range(10):
        context.send(["x" * 100])
    return ["end"]
"""
    with serving(tmp_path, code, stream_credit=250) as worker:
        worker.predict("")
        assert worker.receive_all(1) == {1: [b"x" * 100] * 10 + [b"end", True]}


def test_a_continuous_handler_waits_for_nobody(tmp_path: Path) -> None:
    """The next call is for all requests."""
    code = """
def handle(data, context):
    if data is None:
        return
    calls = context.cache.setdefault("calls", [])
    calls.append(1)
    context.stopping_criteria = [lambda value: len(calls) >= 10 for _ in data]
    return ["x" * 100 for _ in data]
"""
    with serving(tmp_path, code, stream_credit=250, continuous=True) as worker:
        worker.predict("")
        assert worker.receive_all(1) == {1: [b"x" * 100] * 10 + [True]}


def test_without_a_limit_nothing_waits(tmp_path: Path) -> None:
    with serving(tmp_path, "long_stream", handler="h.py:generator") as worker:
        worker.predict(order(tmp_path))
        assert len(b"".join(worker.receive_all(1)[1][:-1])) == 1000
