"""A real worker process on socket pairs, as the frontend would start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from msx_core.log_records import RECORD_SEPARATOR
from msx_protocol import (
    Cancel,
    Chunk,
    Chunks,
    CompleteReplies,
    Credit,
    Drain,
    Dropped,
    FieldHead,
    FrameReader,
    Load,
    Loaded,
    LoadFailed,
    LoadProgress,
    Ping,
    Pong,
    Predict,
    RequestHead,
    ToFrontend,
    encode_frame,
    encode_headers,
)
from tests.forked import ForkingPopen
from tests.frames import fed

SERVICES = Path(__file__).parents[1] / "services"
WATCHDOG = 120.0
"""Seconds after which a test that waits is lost."""


def load_message(model_dir: Path, handler: str, **options: Any) -> Load:
    values: dict[str, Any] = {
        "model_name": "m",
        "model_version": "1.0",
        "model_dir": str(model_dir),
        "handler": handler,
        "manifest": {},
        "config": {},
        "batch_size": 8,
        "isolate_batch_errors": True,
        "device_id": None,
        "rank": 0,
        "local_rank": 0,
        "world_size": 1,
        "cache_dir": None,
        "decode_input": True,
        "limit_max_image_pixels": True,
        "max_response_size": 1 << 20,
        "server_version": "0",
    }
    return Load(**{**values, **options})


def request(number: int, body: Any, **options: Any) -> tuple[RequestHead, bytes]:
    """Bytes go as they are, text as text/plain, everything else as JSON."""
    if isinstance(body, bytes):
        kind, data = None, body
    elif isinstance(body, str):
        kind, data = "text/plain", body.encode()
    else:
        kind, data = "application/json", json.dumps(body).encode()
    headers = encode_headers(options.get("headers", []))
    return RequestHead(number, f"id-{number}", headers, [FieldHead("body", kind, len(data))], None), data


def one_by_one(frames: Iterable[tuple[Any, bytes | bytearray]]) -> Iterator[tuple[Any, bytes]]:
    """Each of several answers, or pieces, as the Chunk that would have said the same."""
    for message, body in frames:
        if isinstance(message, CompleteReplies):
            start = 0
            for number, size in zip(message.numbers, message.sizes, strict=True):
                chunk = Chunk(number, True, message.status, message.phrase, message.headers)
                yield chunk, bytes(body[start : start + size])
                start += size
            assert start == len(body)
        elif isinstance(message, Chunks):
            ends = list(accumulate(message.sizes))
            assert ends[-1] == len(body)
            for number, end, size in zip(message.numbers, ends, message.sizes, strict=True):
                yield Chunk(number, False), bytes(body[end - size : end])
        else:
            yield message, bytes(body)


def command(data: socket.socket, control: socket.socket, parent: int) -> list[str]:
    fds = ["--data-fd", str(data.fileno()), "--control-fd", str(control.fileno())]
    return [sys.executable, "-m", "msx_backend.worker", *fds, "--parent", str(parent)]


class Peer:
    """The frontend's ends of the two sockets."""

    def __init__(self) -> None:
        self.data, self.worker_data = socket.socketpair()
        self.control, self.worker_control = socket.socketpair()
        self.data.settimeout(WATCHDOG)
        self.control.settimeout(WATCHDOG)
        self._data_reader: FrameReader[Any] = FrameReader(ToFrontend)
        self._control_reader: FrameReader[Any] = FrameReader(Pong)
        self._frames: deque[tuple[Any, bytes]] = deque()
        self._newest = 0

    def send(self, message: Any, body: bytes = b"") -> None:
        self.data.sendall(encode_frame(message, body))

    def predict(self, *bodies: Any, **options: Any) -> list[int]:
        """One batch; returns the requests' numbers."""
        first, self._newest = self._newest + 1, self._newest + len(bodies)
        built = [request(first + n, body, **options) for n, body in enumerate(bodies)]
        self.send(Predict([head for head, _ in built]), b"".join(data for _, data in built))
        return list(range(first, self._newest + 1))

    def cancel(self, *numbers: int) -> None:
        """Returns when the worker has seen it."""
        self.control.sendall(encode_frame(Cancel(list(numbers))))
        self.ping()

    def credit(self, number: int, limit: int) -> None:
        self.control.sendall(encode_frame(Credit(number, limit)))

    def ping(self) -> Pong:
        self.control.sendall(encode_frame(Ping(7)))
        while not (frames := fed(self._control_reader, _some(self.control))):
            pass
        ((pong, _),) = frames
        assert isinstance(pong, Pong)
        assert pong.sequence == 7
        return pong

    def receive(self) -> tuple[Any, bytes]:
        """The next message. Raises EOFError when the worker has gone."""
        while not self._frames:
            self._frames += one_by_one(fed(self._data_reader, _some(self.data)))
        return self._frames.popleft()

    def receive_loaded(self) -> Loaded | LoadFailed:
        while isinstance(message := self.receive()[0], LoadProgress):
            pass
        assert isinstance(message, (Loaded, LoadFailed))
        return message

    def receive_all(self, count: int) -> dict[int, list[Any]]:
        """Until `count` requests have ended: per number its chunks' bytes, then True or the message that ended it."""
        seen: dict[int, list[Any]] = {}
        ended = 0
        while ended < count:
            message, body = self.receive()
            events = seen.setdefault(message.number, [])
            if isinstance(message, Chunk):
                events.append(body)
                if not message.last:
                    continue
            events.append(True if isinstance(message, Chunk) else message)
            ended += 1
        return seen

    def close(self) -> None:
        for sock in (self.data, self.control, self.worker_data, self.worker_control):
            sock.close()


class Worker(Peer):
    """A worker of this process, in a working folder of its own."""

    loaded: Loaded

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.cwd = folder, folder / "cwd"
        self.cwd.mkdir()
        self.stderr, self.stdout = folder / "stderr", folder / "stdout"
        with self.stderr.open("wb") as err, self.stdout.open("wb") as out:
            self.process = ForkingPopen(
                command(self.worker_data, self.worker_control, os.getpid()),
                pass_fds=[self.worker_data.fileno(), self.worker_control.fileno()],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
                start_new_session=True,
            )
        self.worker_data.close()
        self.worker_control.close()

    def exit_status(self) -> int:
        return self.process.wait(WATCHDOG)

    def drain(self) -> int:
        self.send(Drain())
        return self.exit_status()

    def logged(self) -> list[dict[str, Any]]:
        lines = self.stderr.read_text(errors="replace").split("\n")  # splitlines() would split at the separator too
        return [json.loads(line[1:]) for line in lines if line.startswith(RECORD_SEPARATOR)]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def serving(folder: Path, code: str, **options: Any) -> Iterator[Worker]:
    """A worker that has loaded `code` (the text of a handler), or the service of that name."""
    model_dir = folder / "model"
    model_dir.mkdir()
    text = code if "\n" in code else (SERVICES / f"{code}.py").read_text()
    (model_dir / "h.py").write_text(text)
    with Worker(folder) as worker:
        worker.send(load_message(model_dir, options.pop("handler", "h.py"), **options))
        loaded = worker.receive_loaded()
        assert isinstance(loaded, Loaded), loaded
        worker.loaded = loaded
        yield worker


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < end, "the condition never came true"
        time.sleep(0.01)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _some(sock: socket.socket) -> bytes:
    data = sock.recv(1 << 16)
    if not data:
        raise EOFError
    return data


def assert_a_deserted_stream_is_closed(folder: Path, service: str) -> None:
    mark = folder / "mark"
    with serving(folder, service) as worker:
        worker.predict({"count": 1_000_000, "pause": 0.01, "mark": str(mark)})
        assert worker.receive()[1] == b"1\n"
        worker.cancel(1)
        while isinstance((message := worker.receive()[0]), Chunk):
            pass
        assert message == Dropped(1)
        assert lines_of(mark) == ["closed"]
