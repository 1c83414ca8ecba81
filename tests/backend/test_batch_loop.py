from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from msx_backend import batch_loop, late_replies
from msx_backend.batch_loop import BatchLoop
from msx_backend.control import CallClock
from msx_backend.open_requests import OpenRequests
from msx_backend.replies import ReplyWriter
from msx_backend.worker_link import WorkerLink
from msx_core.resolve import resolve_object
from msx_protocol import (
    Chunk,
    Drain,
    Dropped,
    Failed,
    FrameReader,
    Joined,
    Predict,
    ToFrontend,
    ToWorker,
    encode_frame,
)
from msx_sdk.context import Context, ModelInfo
from msx_sdk.runner import Runner
from tests.backend.harness import (
    assert_a_deserted_stream_is_closed,
    lines_of,
    one_by_one,
    request,
    serving,
    wait_until,
)
from tests.frames import fed


def test_a_request(tmp_path: Path) -> None:
    with serving(tmp_path, "echo") as worker:
        worker.predict(b"\x00\xff")
        assert worker.receive() == (Chunk(1, True, 200, "", []), b"\x00\xff")


def test_a_batch(tmp_path: Path) -> None:
    with serving(tmp_path, "echo") as worker:
        worker.predict("a", "b")
        worker.predict("c")
        assert worker.receive_all(3) == {1: [b"a", True], 2: [b"b", True], 3: [b"c", True]}


def test_status_and_headers(tmp_path: Path) -> None:
    with serving(tmp_path, "headers") as worker:
        wanted = {"status": 202, "phrase": "Later", "type": "text/x", "headers": {"X-B": "2"}}
        worker.predict(wanted, headers=[("X-A", "1")])
        message, body = worker.receive()
    assert message == Chunk(1, True, 202, "Later", [("content-type", "text/x"), ("X-B", "2")])
    assert json.loads(body) == {"X-A": "1", "body": {"content-type": "application/json"}}


@pytest.mark.parametrize("service", ["one_bad_item", "raise_on_bad"])
def test_a_bad_request_of_eight_fails_alone(tmp_path: Path, service: str) -> None:
    with serving(tmp_path, service) as worker:
        worker.predict(*[b"bad" if n == 3 else str(n) for n in range(8)])
        seen = worker.receive_all(8)
    (failed,) = seen.pop(4)
    assert (failed.status, failed.message) == (400, "body: expected anything but 'bad'")
    assert seen == {n + 1: [str(n).encode(), True] for n in range(8) if n != 3}


def test_without_isolation_the_batch_fails(tmp_path: Path) -> None:
    with serving(tmp_path, "raise_on_bad", isolate_batch_errors=False) as worker:
        worker.predict("good", "bad")
        assert [events[0].status for events in worker.receive_all(2).values()] == [400, 400]


@pytest.mark.parametrize(
    ("service", "body", "status", "message"),
    [
        ("raises", "x", 503, "Prediction failed: ValueError: no luck with 'x'"),
        ("prediction_error", "418", 418, "you asked for 418"),
        ("wrong_length", "x", 503, "number of batch response mismatched: 1 requests, 2 responses"),
        ("not_a_list", "x", 503, "Invalid model predict output"),
        ("unserializable", "x", 503, "Unsupported model output data type: object"),
        ("sys_exit", "3", 503, "Prediction failed: the handler called sys.exit(3)"),
        ("memory", "oom", 507, "Out of resources: MemoryError: the device has no memory left"),
    ],
)
def test_failures_are_answered_and_the_worker_goes_on(
    tmp_path: Path, service: str, body: str, status: int, message: str
) -> None:
    with serving(tmp_path, service) as worker:
        for _ in range(2):
            worker.predict(body)
            failed, _ = worker.receive()
            assert isinstance(failed, Failed)
            assert failed.status == status
            assert failed.message.startswith(message)
        assert worker.drain() == 0


def test_errors_that_quote_megabytes_do_not_break_the_stream(tmp_path: Path) -> None:
    code = """
from msx_sdk import PredictionError
def handle(data, context):
    if data and data[0]["body"] == "chosen":
        raise PredictionError(422, "x" * (80 << 20))
    raise TypeError("NoneType" if data is None else "x" * (80 << 20))
"""
    with serving(tmp_path, code) as worker:
        worker.predict("chosen")
        worker.predict("bug")
        seen = worker.receive_all(2)
        assert worker.drain() == 0
    assert [(seen[n][0].status, len(seen[n][0].message) < 2 << 20) for n in (1, 2)] == [(422, True), (503, True)]


def test_a_message_that_quotes_half_a_character(tmp_path: Path) -> None:
    with serving(tmp_path, "raises") as worker:
        worker.predict({"x": "\ud800"})
        failed, _ = worker.receive()
        assert "ud800" in failed.message
        assert worker.drain() == 0


@pytest.mark.parametrize(
    ("service", "body", "chunks"),
    [
        ("stream_send", "x", [b"one ", b"two ", b"three"]),
        ("stream_generator", {"count": 3}, [b"1\n", b"2\n", b"3\n"]),
    ],
)
def test_streams(tmp_path: Path, service: str, body: object, chunks: list[bytes]) -> None:
    with serving(tmp_path, service) as worker:
        worker.predict(body)
        assert worker.receive_all(1) == {1: [*chunks, True]}


def test_streams_of_a_batch_end_one_by_one(tmp_path: Path) -> None:
    with serving(tmp_path, "stream_generator") as worker:
        worker.predict({"count": 2}, {"count": 1})
        assert worker.receive_all(2) == {1: [b"1\n", b"2\n", True], 2: [b"1\n", True]}


def test_an_error_in_a_stream(tmp_path: Path) -> None:
    with serving(tmp_path, "stream_error_midway") as worker:
        worker.predict("x")
        first, failed = worker.receive_all(1)[1]
        assert first == b"first\n"
        assert failed.status == 503
        assert "the second chunk is not to be had" in failed.message


def test_a_response_that_is_too_large(tmp_path: Path) -> None:
    with serving(tmp_path, "echo", max_response_size=100) as worker:
        worker.predict("x" * 100, "y" * 101)
        seen = worker.receive_all(2)
        assert seen[1] == [b"x" * 100, True]
        assert seen[2][0].status == 500
        assert "max_response_size" in seen[2][0].message


def test_large_requests_and_responses(tmp_path: Path) -> None:
    body = bytes(range(256)) * (1 << 15)
    with serving(tmp_path, "echo", max_response_size=1 << 30) as worker:
        worker.predict(body)
        assert worker.receive_all(1) == {1: [body, True]}


# -- replies are gathered --


class Served:
    """A loop in this process, with what it answered to 20 requests that came at once."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        heads = [request(number, b"x") for number in range(1, 21)]
        ours.sendall(b"".join(encode_frame(Predict([head]), body) for head, body in heads) + encode_frame(Drain()))
        self.replies = ReplyWriter(theirs, 1 << 20)
        runner = Runner(resolve_object(lambda data, context: [b"y"]), Context(ModelInfo("m")))
        with ours, theirs:
            reader = FrameReader[ToWorker](ToWorker)
            BatchLoop(WorkerLink(theirs, reader, OpenRequests(), self.replies, CallClock()), runner).serve()
            self.frames = list(one_by_one(fed(FrameReader[Any](ToFrontend), ours.recv(1 << 16))))


def test_replies_of_short_calls_leave_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_loop, "SHORT", 60.0)
    monkeypatch.setattr(batch_loop, "GATHERED", 60.0)
    monkeypatch.setattr(late_replies, "LATE", 60.0)
    served = Served()
    assert [message.number for message, _ in served.frames] == list(range(1, 21))
    assert served.replies.writes == 1


@pytest.mark.parametrize("limit", ["SHORT", "GATHERED"])
def test_replies_of_longer_calls_leave_at_once(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(batch_loop, limit, 0.0)
    served = Served()
    assert len(served.frames) == 20
    assert served.replies.writes == 20


def test_a_reply_does_not_wait_for_a_long_call_behind_it(tmp_path: Path) -> None:
    os.mkfifo(go_on := tmp_path / "go_on")
    code = f"""
def handle(data, context):
    if data[0]["body"] == "long":
        open({str(go_on)!r}).read()
    return ["done"]
"""
    with serving(tmp_path, code) as worker:
        worker.data.sendall(
            b"".join(encode_frame(Predict([head]), body) for head, body in (request(1, "short"), request(2, "long")))
        )
        assert worker.receive_all(1) == {1: [b"done", True]}
        go_on.write_text("")
        assert worker.receive_all(1) == {2: [b"done", True]}


# -- batches that join --


class Joining:
    """A loop in this process for batches of up to 4, and what its handler saw; `during` is sent while it runs first."""

    def __init__(self, *frames: bytes, during: bytes = b"") -> None:
        self.calls: list[list[bytes]] = []
        ours, theirs = socket.socketpair()
        ours.sendall(b"".join(frames))
        replies = ReplyWriter(theirs, 1 << 20)

        def handle(data: Any, context: Any) -> list[bytes]:
            self.calls.append([bytes(row["body"]) for row in data])
            if len(self.calls) == 1:
                ours.sendall(during)
            return [b"y"] * len(data)

        runner = Runner(resolve_object(handle), Context(ModelInfo("m")))
        with ours, theirs:
            link = WorkerLink(theirs, FrameReader[ToWorker](ToWorker), OpenRequests(), replies, CallClock())
            BatchLoop(link, runner, 4).serve()
            told = one_by_one(fed(FrameReader[Any](ToFrontend), ours.recv(1 << 16)))
            self.told = [message for message, _ in told]

    @property
    def joined(self) -> list[int]:
        return [message.batches for message in self.told if isinstance(message, Joined)]


def batch(*numbers: int, joins: bool = True) -> bytes:
    heads, bodies = zip(*(request(number, b"%d" % number) for number in numbers), strict=True)
    return encode_frame(Predict([*heads], joins), b"".join(bodies))


END = encode_frame(Drain())


def test_batches_join_as_far_as_they_fit() -> None:
    done = Joining(batch(1), batch(2, 3), batch(4, 5), batch(6), batch(7, joins=False), batch(8), END)
    assert done.calls == [[b"1", b"2", b"3"], [b"4", b"5", b"6"], [b"7"], [b"8"]]
    assert done.joined == [2, 2]
    assert [message.number for message in done.told if isinstance(message, Chunk)] == [*range(1, 9)]
    assert isinstance(done.told[0], Joined)  # before it runs: a crash is the fault of all of them


def test_a_frame_may_hold_several_batches() -> None:
    heads, bodies = zip(*(request(number, b"%d" % number) for number in range(1, 6)), strict=True)
    done = Joining(encode_frame(Predict([*heads], size=2), b"".join(bodies)), batch(6, joins=False), END)
    assert done.calls == [[b"1", b"2"], [b"3", b"4"], [b"5"], [b"6"]]
    assert [message.number for message in done.told if isinstance(message, Chunk)] == [*range(1, 7)]


def test_batches_that_come_while_one_runs_are_the_next() -> None:
    done = Joining(batch(1), during=batch(2) + batch(3) + END)
    assert (done.calls, done.joined) == ([[b"1"], [b"2", b"3"]], [2])


def test_a_batch_joins_those_that_are_read_only_now() -> None:
    """The first reading holds but a part of what is there."""
    large = [
        encode_frame(Predict([head], joins=True), body) for head, body in (request(n, b"x" * 30_000) for n in (2, 3, 4))
    ]
    done = Joining(batch(1), *large, END)
    assert [len(call) for call in done.calls] == [4]


def test_a_cancelled_one_joins_no_call(tmp_path: Path) -> None:
    with serving(tmp_path, "echo", batch_size=4) as worker:
        worker.cancel(2)
        worker.data.sendall(batch(1) + batch(2))
        assert worker.receive() == (Joined(2, 1), b"")
        assert worker.receive_all(2) == {1: [b"1", True], 2: [Dropped(2)]}


# -- cancel --


def test_a_running_cooperative_handler_sees_its_cancel(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "slow") as worker:
        worker.predict({"seconds": 600, "mark": str(mark)})
        wait_until(lambda: lines_of(mark) == ["started"])
        worker.cancel(1)
        assert worker.receive() == (Dropped(1), b"")
        assert lines_of(mark) == ["started", "cancelled"]


def test_a_cancelled_neighbour_keeps_its_place(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "slow") as worker:
        worker.predict({"seconds": 600, "mark": str(mark)}, {"seconds": 0})
        wait_until(lambda: lines_of(mark) == ["started"])
        worker.cancel(1)
        seen = worker.receive_all(2)
        assert json.loads(seen[2][0]) == {"slept": 0}
        assert seen[1] == [Dropped(1)]


def test_a_queued_request_is_never_run(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with serving(tmp_path, "slow") as worker:
        worker.predict({"seconds": 600, "mark": str(first)})
        worker.predict({"seconds": 0, "mark": str(second)})
        wait_until(lambda: lines_of(first) == ["started"])
        worker.cancel(2)
        worker.cancel(1)
        assert [worker.receive()[0], worker.receive()[0]] == [Dropped(1), Dropped(2)]
        assert not second.exists()


def test_a_cancel_may_come_before_its_request(tmp_path: Path) -> None:
    with serving(tmp_path, "echo") as worker:
        worker.cancel(2)
        worker.predict("a", "b")
        assert worker.receive_all(2) == {1: [b"a", True], 2: [Dropped(2)]}


def test_a_deserted_generator_is_closed(tmp_path: Path) -> None:
    assert_a_deserted_stream_is_closed(tmp_path, "stream_generator")


# -- threads, output, the end --


def test_a_thread_that_sends_after_its_batch_ended_is_harmless(tmp_path: Path) -> None:
    code = """
import threading
from msx_sdk import Handler
class H(Handler):
    first = None
    def handle(self, data, context):
        if self.first is None:
            self.first = context
            return ["first"]
        late = threading.Thread(target=self.first.send, args=(["late"],))
        late.start()
        late.join()
        return ["second"]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("x")
        worker.predict("x")
        assert worker.receive_all(2) == {1: [b"first", True], 2: [b"second", True]}


def test_handlers_may_send_from_threads(tmp_path: Path) -> None:
    code = """
import threading
def handle(data, context):
    if data is None:
        return
    def send(idx):
        for _ in range(50):
            context.send([f"{idx}" if n == idx else None for n in range(len(data))])
    threads = [threading.Thread(target=send, args=(idx,)) for idx in range(len(data))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return ["end"] * len(data)
"""
    with serving(tmp_path, code) as worker:
        worker.predict("a", "b", "c")
        seen = worker.receive_all(3)
    assert seen == {n + 1: [f"{n}".encode()] * 50 + [b"end", True] for n in range(3)}


def test_megabytes_of_output_do_not_disturb(tmp_path: Path) -> None:
    with serving(tmp_path, "prints") as worker:
        worker.predict("2")
        assert worker.receive_all(1) == {1: [b"printed", True]}
        assert worker.drain() == 0
    assert (tmp_path / "stdout").stat().st_size == (tmp_path / "stderr").stat().st_size == 2_000_000


def test_a_print_is_seen_although_the_process_crashes(tmp_path: Path) -> None:
    code = "import os\ndef handle(data, context):\n    data and (print('last words'), os._exit(9))\n"
    with serving(tmp_path, code) as worker:
        worker.predict("x")
        assert worker.exit_status() == 9
    assert (tmp_path / "stdout").read_text() == "last words\n"


def test_a_handler_that_closes_stdout_under_a_half_line(tmp_path: Path) -> None:
    code = """
import os
def handle(data, context):
    data and (print("half", end=""), os.close(1))
    return ["x"]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("x")
        assert worker.receive_all(1) == {1: [b"x", True]}
        assert worker.drain() == 0


@pytest.mark.parametrize(("way", "status"), [("abort", -6), ("exit", 3), ("segfault", -11), ("kill", -9)])
def test_crashes(tmp_path: Path, way: str, status: int) -> None:
    with serving(tmp_path, "crash") as worker:
        worker.predict(way)
        with pytest.raises((EOFError, ConnectionResetError)):
            worker.receive()
        assert worker.exit_status() == status
    if way in ("abort", "segfault"):
        assert 'h.py", line' in (tmp_path / "stderr").read_text()


def test_drain_finishes_what_was_sent_before(tmp_path: Path) -> None:
    with serving(tmp_path, "slow") as worker:
        worker.predict({"seconds": 0.01})
        worker.predict({"seconds": 0.01})
        assert worker.drain() == 0
        assert len(worker.receive_all(2)) == 2


def test_threads_and_children_do_not_hold_the_process(tmp_path: Path) -> None:
    with serving(tmp_path, "leak") as worker:
        worker.predict("x")
        assert worker.receive_all(1)[1][1] is True
        assert worker.drain() == 0


def test_a_broken_frame_ends_the_worker(tmp_path: Path) -> None:
    with serving(tmp_path, "echo") as worker:
        worker.data.sendall(encode_frame(Dropped(1)))
        assert worker.exit_status() == 1
        assert any("not a message of this protocol" in entry.get("traceback", "") for entry in worker.logged())
