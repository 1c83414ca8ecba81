"""The main thread of a worker with `continuousBatching`."""

from __future__ import annotations

from pathlib import Path

from msx_protocol import Chunk, Drain, Dropped, Failed
from tests.backend.harness import lines_of, serving, wait_until

CODE = '''
import time
from pathlib import Path

MARK = Path("{mark}")


def handle(data, context):
    """Bodies are numbers of tokens, and end with x to wait for the file go before each call."""
    gated = False
    for id, row in zip(context.request_ids.values(), data):
        if row:
            context.cache[id] = [int(row["body"].rstrip("x")), row["body"].endswith("x")]
        gated = gated or context.cache[id][1]
        context.cache[id][0] -= 1
    with MARK.open("a") as mark:
        mark.write(" ".join(sorted(context.cache)) + chr(10))
    while gated and not MARK.with_name("go").exists():
        time.sleep(0.005)
    left = [context.cache[id][0] for id in context.request_ids.values()]
    context.stopping_criteria = [lambda value, n=n: n <= 0 for n in left]
    return [("x" * 10 if n == 7 else str(n)) for n in left]
'''


def code(folder: Path) -> str:
    return CODE.replace("{mark}", str(folder / "mark"))


def test_requests_are_answered_call_by_call(tmp_path: Path) -> None:
    with serving(tmp_path, code(tmp_path), continuous=True) as worker:
        worker.predict("2", "3")
        seen = worker.receive_all(2)
        assert seen == {1: [b"1", b"0", True], 2: [b"2", b"1", b"0", True]}
        worker.predict("1")
        assert worker.receive_all(1) == {3: [b"0", True]}
        assert worker.drain() == 0


def test_one_that_comes_later_joins(tmp_path: Path) -> None:
    with serving(tmp_path, code(tmp_path), continuous=True) as worker:
        worker.predict("3x")
        wait_until(lambda: lines_of(tmp_path / "mark") == ["id-1"])
        worker.predict("1")
        (tmp_path / "go").touch()
        assert worker.receive_all(2) == {1: [b"2", b"1", b"0", True], 2: [b"0", True]}
    assert lines_of(tmp_path / "mark")[1] == "id-1 id-2"


def test_a_cancelled_one_leaves_at_the_next_call(tmp_path: Path) -> None:
    with serving(tmp_path, code(tmp_path), continuous=True) as worker:
        worker.predict("1000000x", "2x")
        wait_until(lambda: lines_of(tmp_path / "mark"))
        worker.cancel(1)
        (tmp_path / "go").touch()
        assert worker.receive_all(2) == {1: [Dropped(1)], 2: [b"1", b"0", True]}
        worker.predict("1")
        assert worker.receive_all(1) == {3: [b"0", True]}
    assert lines_of(tmp_path / "mark") == ["id-1 id-2", "id-2", "id-3"]


def test_one_that_is_cancelled_before_it_comes_is_never_begun(tmp_path: Path) -> None:
    with serving(tmp_path, code(tmp_path), continuous=True) as worker:
        worker.cancel(1)
        worker.predict("1")
        assert worker.receive_all(1) == {1: [Dropped(1)]}
    assert lines_of(tmp_path / "mark") == []


def test_drain_lets_requests_in_progress_finish(tmp_path: Path) -> None:
    with serving(tmp_path, code(tmp_path), continuous=True) as worker:
        worker.predict("3x")
        wait_until(lambda: lines_of(tmp_path / "mark"))
        worker.send(Drain())
        (tmp_path / "go").touch()
        assert worker.receive_all(1) == {1: [b"2", b"1", b"0", True]}
        assert worker.exit_status() == 0


def test_a_response_that_is_too_large_ends_its_request(tmp_path: Path) -> None:
    """It is not called for again, though its criterion says that there is more."""
    with serving(tmp_path, code(tmp_path), continuous=True, max_response_size=5) as worker:
        worker.predict("8", "3")
        seen = worker.receive_all(2)
        assert worker.drain() == 0
    assert isinstance(seen[1][0], Failed)
    assert seen[2] == [b"2", b"1", b"0", True]
    assert len(lines_of(tmp_path / "mark")) == 3


def test_an_async_handler_is_not_continuous(tmp_path: Path) -> None:
    handler = "async def handle(data, context):\n    return ['once']\n"
    with serving(tmp_path, handler, continuous=True) as worker:
        worker.predict("1")
        assert worker.receive() == (Chunk(1, True, 200, "", []), b"once")


def test_a_generator_is_not_continuous(tmp_path: Path) -> None:
    """It streams as it always does, and the log says so."""
    handler = "def handle(data, context):\n    yield ['one']\n    yield ['two']\n"
    with serving(tmp_path, handler, continuous=True) as worker:
        worker.predict("1")
        assert worker.receive_all(1) == {1: [b"one", b"two", b"", True]}
        assert "continuousBatching has no effect" in worker.logged()[0]["message"]
