"""`python -m msx_backend.worker`: the process of one rank."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import logging
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence

from msgspec import structs

from msx_backend.async_loop import AsyncLoop
from msx_backend.batch_loop import BatchLoop
from msx_backend.continuous_loop import ContinuousLoop
from msx_backend.control import CallClock, ControlThread
from msx_backend.early_heads import EarlyHeads
from msx_backend.loading import LoadedModel
from msx_backend.loop_watch import LoopWatch
from msx_backend.lost_devices import LostDevices
from msx_backend.open_requests import OpenRequests
from msx_backend.overlap.loop import OverlapLoop
from msx_backend.parallel.follower import Follower
from msx_backend.parallel.leader import Leader
from msx_backend.pinged import PingedWorker
from msx_backend.replies import ReplyWriter, utf8
from msx_backend.seen_devices import SeenDevices
from msx_backend.segments.space import SegmentSpace
from msx_backend.supervisor_line import SupervisorLine
from msx_backend.worker_link import WorkerLink
from msx_core.failures import is_out_of_memory, summary
from msx_core.log_records import log_to_stderr
from msx_core.orphan import die_with_parent
from msx_core.runner import RAISED
from msx_protocol import FrameReader, Load, Loaded, LoadFailed, ProtocolError, ToWorker

GRAPHS = "msx_core.mindspore.graph_cache"

log = logging.getLogger("msx.worker")


class Worker:
    """Two sockets, one handler. `run` returns when the frontend asks for the end.

    In a parallel group `plans` are rank 0's sockets to the other ranks, or another rank's one socket to rank 0.
    `segments` is the socket for shared memory, which a stage's rank 0 has. With `line` the worker outlives a frontend
    that crashes.
    """

    def __init__(
        self,
        data: socket.socket,
        control: socket.socket,
        plans: Sequence[socket.socket] = (),
        segments: socket.socket | None = None,
        line: SupervisorLine | None = None,
    ) -> None:
        self._data, self._plans, self._segments, self._line = data, plans, segments, line
        self._reader: FrameReader[ToWorker] = FrameReader(ToWorker)
        self._jobs, self._clock = OpenRequests(), CallClock()
        self._control = ControlThread(control, self._jobs, self._clock)
        self._space: SegmentSpace | None = None
        self._loaded: Loaded | None = None
        self._leader: Leader | None = None

    def run(self) -> int:
        self._control.start()
        load = self._receive_load()
        if load is None:
            return 1
        limits = load.max_response_size, load.stream_credit, load.max_value_size
        early_heads = EarlyHeads(load.stream_heartbeat, raw=load.stream_early_head)
        parallel, space = load.world_size > 1, None
        self._replies = ReplyWriter(self._data, *limits, early_heads, outlives=self._line is not None)
        if self._line is not None and load.rank:
            self._line.take_at_once(self._connect)
        self._control.line = self._line
        if load.segments is not None and self._segments is not None:
            space = self._space = SegmentSpace(self._segments, load.segments)
            self._jobs.share(space, self._replies.returned, inline=parallel)
        self._pinged = PingedWorker(self._replies, space, parallel=parallel)
        self._control.attach(self._pinged)
        self._lost, self._seen = LostDevices(load.torch_devices, self._replies), SeenDevices(load.torch_devices)
        try:
            self._serve(load)
        except _LoadError:
            return 1
        return 0

    def _receive_load(self) -> Load | None:
        while count := self._data.recv_into(self._reader.space()):
            if frames := self._reader.received(count):
                load, self._early = frames[0][0], frames[1:]
                if not isinstance(load, Load):
                    raise ProtocolError(f"the first message is {type(load).__name__}, not Load")
                return load
        return None

    def _serve(self, load: Load) -> None:
        self._started = time.monotonic()
        with _loading(self._replies):
            model = LoadedModel(load, self._replies, self._lost)
        self._pinged.metrics = model.context.metrics
        if load.world_size > 1:
            self._serve_rank(load, model)
        elif model.is_async:
            self._run(model)
        else:
            self._serve_batches(model)

    def _serve_batches(self, model: LoadedModel, leader: Leader | None = None) -> None:
        with _loading(self._replies):
            runner = model.start(leader)
        self._announce(model)
        if steps := model.steps(runner):
            OverlapLoop(self._link, steps, model.batch_size).serve(self._early)
        elif model.continuous:
            ContinuousLoop(self._link, runner).serve(self._early)
        else:
            BatchLoop(self._link, runner, model.batch_size).serve(self._early)
        if leader is not None:
            leader.close()
        model.close()

    def _serve_rank(self, load: Load, model: LoadedModel) -> None:
        with _loading(self._replies):
            model.check_parallel()
        if load.rank == 0:
            leader = self._leader = Leader(self._plans, load.input_ranks, self._jobs, self._replies)
            if model.is_async:
                return self._run(model, leader)
            self._jobs.deferred = True
            return self._serve_batches(model, leader)
        with _loading(self._replies):
            follower = Follower(self._plans[0], self._replies, self._clock, model.handler.follow, self._lost)
            runner = model.start_following(follower)
            if load.rank < load.input_ranks:
                follower.examples = model.examples_by_id()
        self._announce(model)
        follower.serve(runner)
        return model.close()

    def _run(self, model: LoadedModel, leader: Leader | None = None) -> None:
        if model.uses_uvloop:
            import uvloop  # other handlers' workers start without it

            return uvloop.run(self._serve_async(model, leader))
        return asyncio.run(self._serve_async(model, leader))

    async def _serve_async(self, model: LoadedModel, leader: Leader | None = None) -> None:
        with _loading(self._replies):
            runner = await model.start_async(leader)
        serving = AsyncLoop(self._link, runner)
        loop = asyncio.get_running_loop()
        self._pinged.watch = LoopWatch(loop.call_soon_threadsafe, lambda: serving.busy, str(model.context.model_dir))
        self._announce(model)
        await serving.serve(self._early)
        self._pinged.watch = None
        if leader is not None:
            leader.close()
        await model.close_async()

    @property
    def _link(self) -> WorkerLink:
        return WorkerLink(self._data, self._reader, self._jobs, self._replies, self._clock, self._reconnect)

    def _reconnect(self) -> bool:
        """Wait for the next frontend."""
        if self._line is None:
            return False
        self._jobs.orphan()
        data, *segments = self._line.next_ends()
        self._jobs.adopt()
        self._reader.restart()
        if self._space is not None and segments:
            self._space.restart(segments[0])
        self._connect(data)
        return True

    def _connect(self, data: int) -> None:
        """Use the data socket to the next frontend, which hears what the one before it knew."""
        call = 0 if self._leader is None else self._leader.last_call
        loaded = self._loaded and structs.replace(self._loaded, newest=self._jobs.newest, call=call)
        self._replies.reconnect(data, loaded)

    def _announce(self, model: LoadedModel) -> None:
        if graphs := sys.modules.get(GRAPHS):
            graphs.loaded()
        with _loading(self._replies):
            capabilities, signature, methods = model.capabilities(), model.signature(), model.methods()
            sequential = model.sequential_reason()
        if model.context.local_rank == 0:
            self._seen.compare()
        self._lost.serving = True
        gc.collect()
        gc.freeze()  # what the model holds lives as long as the worker: not worth a look at each collection
        seconds = time.monotonic() - self._started
        announced = capabilities, signature, model.continuous, methods
        self._loaded = Loaded(model.is_async, seconds, *announced, not sequential, sequential)
        self._replies.send(self._loaded)


class _LoadError(Exception):
    """The error was already sent to the server."""


class _loading:
    """Turns any exception while loading into one LoadFailed."""

    def __init__(self, replies: ReplyWriter) -> None:
        self._replies = replies

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RAISED):
            text = "".join(traceback.format_exception(error))
            self._replies.send(LoadFailed(utf8(summary(error)), utf8(text), is_out_of_memory(error)))
            raise _LoadError from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-fd", type=int, required=True)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--plan-fd", type=int, action="append", default=[], dest="plan_fds")
    parser.add_argument("--segments-fd", type=int, help="the socket for shared memory, of a stage's rank 0")
    parser.add_argument("--line-fd", type=int, help="the socket to the supervisor, where there is one")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--descriptors", type=int, help="the soft limit, where the inherited one is higher")
    options = parser.parse_args()
    die_with_parent(options.parent)  # before another thread runs, by which a server knows that it is done
    _limit_descriptors(options.descriptors)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a print() before a crash must be seen
    log_to_stderr()
    status = 1
    try:
        data, control, *plans = map(_inherited, (options.data_fd, options.control_fd, *options.plan_fds))
        segments = None if options.segments_fd is None else _inherited(options.segments_fd)
        line = None if options.line_fd is None else SupervisorLine(_inherited(options.line_fd))
        status = Worker(data, control, plans, segments, line).run()
    except BaseException:
        log.exception("the worker ends")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the handler may have closed it
            stream.flush()
    os._exit(status)  # a handler's stray threads must not hold the process


def _limit_descriptors(most: int | None) -> None:
    """The server has raised its own limit: what a model starts may count on the usual one, for select(2) say."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most is not None and most < soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _inherited(fd: int) -> socket.socket:
    os.set_inheritable(fd, False)  # a handler's own child must not keep the connection open
    return socket.socket(fileno=fd)


if __name__ == "__main__":
    main()
