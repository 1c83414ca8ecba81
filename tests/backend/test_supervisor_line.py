"""A worker whose frontend crashes, and that another one takes over."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from msx_backend.batch_loop import BatchLoop
from msx_backend.control import CallClock, ControlThread
from msx_backend.open_requests import OpenRequests
from msx_backend.pinged import PingedWorker
from msx_backend.replies import ReplyWriter
from msx_backend.supervisor_line import SupervisorLine
from msx_backend.worker_link import WorkerLink
from msx_core.context import Context
from msx_core.resolve import resolve_object
from msx_protocol import Drain, FrameReader, Loaded, Ping, Pong, Predict, ToFrontend, ToWorker, encode_frame
from msx_protocol.heartbeat import BEFORE
from msx_sdk.context import ModelInfo
from msx_sdk.metrics import Metrics
from msx_sdk.runner import Runner
from tests.backend.harness import request
from tests.frames import fed


class Bench:
    """Sockets of a worker, of its frontend and of its supervisor."""

    def __init__(self) -> None:
        self.data, self.theirs = socket.socketpair()
        self.supervisor, self._line = socket.socketpair()
        self.line = SupervisorLine(self._line)
        self.control, self.first_control = socket.socketpair()

    def close(self) -> None:
        for sock in (self.data, self.theirs, self.supervisor, self._line, self.control, self.first_control):
            sock.close()

    def next_frontend(self) -> socket.socket:
        """Its data socket, after the control thread has received the worker's ends."""
        data, data_end = socket.socketpair()
        control, control_end = socket.socketpair()
        with data_end, control_end, control:
            socket.send_fds(self.supervisor, [b"\n"], [data_end.fileno(), control_end.fileno()])
        assert self.line.reconnect(self.control)
        return data


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def received(data: socket.socket) -> list[Any]:
    return [message for message, _ in fed(FrameReader[Any](ToFrontend), data.recv(1 << 16))]


def test_the_supervisors_end_ends_the_worker(bench: Bench) -> None:
    bench.supervisor.close()
    assert not bench.line.reconnect(bench.control)


def test_half_a_frame_is_dropped_and_the_next_frontend_is_answered(bench: Bench) -> None:
    """Also with replies unread in the socket of the first one, for which the kernel resets it."""
    reader, jobs = FrameReader[ToWorker](ToWorker), OpenRequests()
    replies = ReplyWriter(bench.theirs, 1 << 20, outlives=True)
    runner = Runner(resolve_object(lambda data, context: [b"y"]), Context(ModelInfo("m")))

    def reconnect() -> bool:
        data = bench.line.next_ends()[0]
        reader.restart()
        replies.reconnect(data, Loaded(False, 1.0, newest=jobs.newest))
        return True

    head, body = request(7, b"x")
    frame = encode_frame(Predict([head]), body)
    link = WorkerLink(bench.theirs, reader, jobs, replies, CallClock(), reconnect)
    thread = threading.Thread(target=BatchLoop(link, runner).serve)
    thread.start()
    bench.data.sendall(frame + frame[:5])
    bench.data.recv(1, socket.MSG_PEEK)
    bench.data.close()
    with bench.next_frontend() as data:
        (loaded,) = received(data)
        assert loaded.newest == 7
        head, body = request(8, b"x")
        data.sendall(encode_frame(Predict([head]), body) + encode_frame(Drain()))
        (answered,) = received(data)
        assert answered.numbers == [8]
    thread.join()


def test_what_is_sent_meanwhile_is_dropped(bench: Bench) -> None:
    replies = ReplyWriter(bench.theirs, 1 << 20, outlives=True)
    bench.data.close()
    replies.send(Loaded(False, 1.0))
    with bench.next_frontend() as data:
        replies.reconnect(bench.line.next_ends()[0], None)
        replies.send(Loaded(False, 2.0))
        assert [message.seconds for message in received(data)] == [2.0]


def pong(control: socket.socket) -> Pong:
    control.sendall(encode_frame(Ping(BEFORE)))
    ((found, _),) = fed(FrameReader[Pong](Pong), control.recv(1 << 16))
    return found


def test_the_next_frontend_hears_of_metrics_while_a_call_still_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their samples come by the same pongs, before the worker has told again what it has loaded."""
    ended = list[int]()
    monkeypatch.setattr(os, "_exit", ended.append)
    thread = ControlThread(bench.control, OpenRequests(), CallClock())
    pinged, thread.line = PingedWorker(ReplyWriter(bench.theirs, 1 << 20), None, parallel=False), bench.line
    pinged.metrics = Metrics("m")
    pinged.metrics.counter("calls").update(1)
    thread.attach(pinged)
    thread.start()
    with bench.first_control as control:
        assert [[form.name for form in pong(control).forms] for _ in range(2)] == [["calls"], []]
    data_end, (control, control_end) = socket.socketpair(), socket.socketpair()
    with control, control_end, data_end[0], data_end[1]:
        socket.send_fds(bench.supervisor, [b"\n"], [data_end[1].fileno(), control_end.fileno()])
        assert [form.name for form in pong(control).forms] == ["calls"]
        bench.supervisor.close()
    thread.join()
    assert ended == [1]
    os.close(bench.line.next_ends()[0])


def test_without_a_supervisor_a_broken_connection_is_an_error(bench: Bench) -> None:
    bench.data.close()
    with pytest.raises(BrokenPipeError):
        ReplyWriter(bench.theirs, 1 << 20).send(Loaded(False, 1.0))
