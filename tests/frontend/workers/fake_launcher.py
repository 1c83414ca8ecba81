"""A launcher without processes, sockets or folders: its ranks are objects of the test, which says what they do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msx_frontend.workers.launcher import ExitStatus, GroupSpec, Launcher, RankSpec, RankStatus
from msx_frontend.workers.segments.allowance import SegmentSocket
from msx_protocol import (
    Cancel,
    CompleteReplies,
    Drain,
    FrameReader,
    Load,
    Loaded,
    LoadFailed,
    Ping,
    Pong,
    Predict,
    RequestHead,
    ToWorker,
    ToWorkerControl,
    WireMessage,
    encode_frame,
)
from tests.backend.harness import load_message

PID = 4711
MEMORY = 1 << 20


class FakeStream(asyncio.Transport):
    """Both a rank's end and the group's transport. `on_bytes` is given what the group writes."""

    def __init__(self, on_bytes: Callable[[bytes], None] = lambda data: None) -> None:
        super().__init__()
        self._on_bytes = on_bytes
        self._reader: Any = None
        self._closed = False

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        self._reader = reader
        reader.connection_made(self)
        if self._closed:
            reader.connection_lost(None)

    # -- what the rank does --

    def say(self, data: bytes) -> None:
        if isinstance(self._reader, asyncio.Protocol):
            self._reader.data_received(data)
        while data and isinstance(self._reader, asyncio.BufferedProtocol):
            space = memoryview(self._reader.get_buffer(-1))
            size = min(len(space), len(data))
            space[:size] = data[:size]
            self._reader.buffer_updated(size)
            data = data[size:]

    def end(self) -> None:
        if not self._closed:
            self._closed = True
            if self._reader is not None:
                self._reader.connection_lost(None)

    # -- what the group does --

    def write(self, data: Any) -> None:
        self._on_bytes(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self._on_bytes(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        asyncio.get_running_loop().call_soon(self.end)

    abort = close


class FakeRank:
    """Loads at once, answers pings, and holds its requests until `answer`; ends when it is told to."""

    def __init__(self, spec: RankSpec) -> None:
        self.load: Load = spec.load
        self.pid = PID + spec.load.rank
        self.env = spec.env
        self.data, self.control = FakeStream(self._data), FakeStream(self._control)
        self.stdout, self.stderr = FakeStream(), FakeStream()
        self.segments: SegmentSocket | None = None
        self.ended: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.requests: dict[int, tuple[RequestHead, bytes]] = {}
        self.cancelled: list[int] = []
        self.draining = False
        self.others: list[FakeRank] = []
        """Ranks that rank 0 leads."""
        self._frames: FrameReader[ToWorker] = FrameReader(ToWorker)
        self._control_frames: FrameReader[ToWorkerControl] = FrameReader(ToWorkerControl)

    # -- what the test says --

    def say(self, message: WireMessage, body: bytes = b"") -> None:
        self.data.say(encode_frame(message, body))

    def answer(self) -> None:
        """Every request gets its own body back; of those that are drained these were the last."""
        requests, self.requests = self.requests, {}
        if requests:
            bodies = [body for _, body in requests.values()]
            self.say(CompleteReplies(list(requests), [*map(len, bodies)], 200, "", []), b"".join(bodies))
        self._end_when_drained()

    def end(self, code: int) -> None:
        for stream in (self.data, self.control, self.stdout, self.stderr):
            stream.end()
        if not self.ended.done():
            self.ended.set_result(ExitStatus(code=code))

    def begin_to_load(self) -> None:
        self.say(Loaded(is_async=False, seconds=0.1))

    def fail_to_load(self, message: str, traceback: str) -> None:
        self.say(LoadFailed(message, traceback, False))

    # -- what the group says --

    def cut(self, error: Exception) -> None:
        self.kill()

    def kill(self) -> None:
        asyncio.get_running_loop().call_soon(self.end, -signal.SIGKILL)

    async def gone(self) -> None:
        await self.ended

    def describe(self) -> RankStatus:
        if self.ended.done():
            return RankStatus(host="nowhere")
        return RankStatus(host="nowhere", pid=self.pid, memory=MEMORY, own_memory=MEMORY)

    def adapt(self, load: Load) -> Load:
        return load

    async def memory_taken(self) -> int:
        return self.describe().own_memory

    def _data(self, data: bytes) -> None:
        for message, body in _messages(self._frames, data):
            if isinstance(message, Load):
                self.begin_to_load()
            elif isinstance(message, Predict):
                self._take(message, body)
            elif isinstance(message, Drain):
                self.draining = True
                self._end_when_drained()

    def _take(self, message: Predict, body: bytes) -> None:
        for head in message.requests:
            size = sum(field.size for field in head.fields)
            self.requests[head.number], body = (head, body[:size]), body[size:]

    def _end_when_drained(self) -> None:
        if self.draining and not self.requests:
            for rank in (self, *self.others):
                asyncio.get_running_loop().call_soon(rank.end, 0)

    def _control(self, data: bytes) -> None:
        for message, _ in _messages(self._control_frames, data):
            if isinstance(message, Ping):
                self.control.say(encode_frame(Pong(message.sequence, 0, 0.0, [])))
            elif isinstance(message, Cancel):
                self.cancelled += message.numbers


class FakeLauncher:
    """`make_rank` says what the ranks are; `refusal` lets no group start."""

    def __init__(self, make_rank: Callable[[RankSpec], FakeRank] = FakeRank) -> None:
        self._make_rank = make_rank
        self.refusal: OSError | None = None
        self.groups: list[list[FakeRank]] = []
        self.specs: list[GroupSpec] = []
        self.cancelled = 0
        self.may_start = asyncio.Event()
        self.may_start.set()

    async def launch(self, spec: GroupSpec) -> Sequence[FakeRank]:
        self.specs.append(spec)
        try:
            await self.may_start.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.refusal is not None:
            raise self.refusal
        leader, *others = [self._make_rank(rank) for rank in spec.ranks]
        leader.others = others
        self.groups.append([leader, *others])
        return self.ranks

    @property
    def ranks(self) -> list[FakeRank]:
        """Ranks of the last group."""
        return self.groups[-1]


def spec_of(ranks: int = 1, **options: Any) -> GroupSpec:
    loads = [load_message(Path("/nowhere"), "h.py", rank=rank, world_size=ranks) for rank in range(ranks)]
    return GroupSpec(
        ranks=tuple(RankSpec(load=load, env={}) for load in loads),
        startup_timeout=30.0,
        response_timeout=30.0,
        max_concurrent=1,
        **options,
    )


def _launcher() -> Launcher:
    return FakeLauncher()  # mypy checks that the fake is one


def _messages(frames: FrameReader[Any], data: bytes) -> list[tuple[Any, bytes]]:
    messages: list[tuple[Any, bytes]] = []
    while data:
        space = frames.space()
        size = min(len(space), len(data))
        space[:size] = data[:size]
        messages += [(message, bytes(body)) for message, body in frames.received(size)]
        data = data[size:]
    return messages
