import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from msx_core.replies import reply_buffer
from msx_core.replies.reply_buffer import UNPACED, ReaderTooSlow, ReplyBuffer
from msx_core.replies.stream_credit import BEHIND, FIRST, StreamBuffers, StreamCredit
from msx_core.service_errors import HandlerFailed, RequestCancelled, WorkerDied
from msx_frontend.job import Job


def run(test: Callable[[ReplyBuffer, Job], Awaitable[None]], stall_limit: float = 1000) -> None:
    async def main() -> None:
        reply = ReplyBuffer(stall_limit)
        reply.job = Job("id", "m", None, [], [], reply)
        await asyncio.wait_for(test(reply, reply.job), 120)
        reply.close()

    asyncio.run(main())


def test_a_whole_answer() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        assert not reply.whole
        reply.start(201, "Made", [("a", "b")])
        reply.chunk(b"one")
        assert not reply.whole
        job.finish(201)
        assert await reply.head() == (201, "Made", [("a", "b")])
        assert reply.whole
        assert await reply.take() == (b"one", True)
        assert await reply.take() == (b"", True)

    run(test)


def test_what_was_sent_in_pieces_is_not_a_whole_answer() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(b"one")
        reply.chunk(b"two")
        job.finish(200)
        assert not reply.whole
        assert [chunk async for chunk in reply] == [b"one", b"two"]

    run(test)


def test_a_reader_that_waits_for_every_step() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        head = asyncio.ensure_future(reply.head())
        await asyncio.sleep(0)
        assert not head.done()
        reply.start(200, "", [])
        assert (await head).status == 200
        take = asyncio.ensure_future(reply.take())
        await asyncio.sleep(0)
        assert not take.done()
        reply.chunk(b"one")
        assert await take == (b"one", False)
        take = asyncio.ensure_future(reply.take())
        await asyncio.sleep(0)
        job.finish(200)
        assert await take == (b"", True)

    run(test)


def test_start_chunk_and_end_in_one_go_wake_the_reader_once_with_all_of_it() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        take = asyncio.ensure_future(reply.take())
        await asyncio.sleep(0)
        reply.start(200, "", [])
        reply.chunk(b"all")
        job.finish(200)
        assert await take == (b"all", True)

    run(test)


def test_chunk_by_chunk() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(b"one")
        reply.chunk(b"two")
        job.finish(200)
        assert [chunk async for chunk in reply] == [b"one", b"two"]

    run(test)


def test_an_end_without_a_start_is_an_empty_answer() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        job.finish(200)
        assert await reply.head() == (200, "", [])
        assert await reply.take() == (b"", True)

    run(test)


def test_an_error_before_the_start() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        head = asyncio.ensure_future(reply.head())
        await asyncio.sleep(0)
        job.fail(HandlerFailed(400, "no"))
        with pytest.raises(HandlerFailed, match="no"):
            await head
        with pytest.raises(HandlerFailed, match="no"):
            await reply.take()

    run(test)


def test_an_error_before_any_bytes_comes_instead_of_the_head() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        job.fail(HandlerFailed(400, "no"))
        with pytest.raises(HandlerFailed, match="no"):
            await reply.head()

    run(test)


def test_an_error_comes_after_the_bytes_before_it() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(b"one")
        job.fail(WorkerDied("gone"))
        assert (await reply.head()).status == 200
        assert not reply.whole
        assert await reply.take() == (b"one", False)
        with pytest.raises(WorkerDied, match="gone"):
            await reply.take()

    run(test)


def test_the_first_error_counts() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.fail(WorkerDied("first"))
        reply.fail(RequestCancelled())
        with pytest.raises(WorkerDied, match="first"):
            await reply.head()

    run(test)


def test_a_reader_that_takes_nothing_for_the_stall_limit_loses_its_job() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(b"one")
        reply.chunk(bytes(UNPACED.size))
        stalled = asyncio.Event()
        job.listener = _Tell(stalled)
        await stalled.wait()
        assert job.cancelled
        with pytest.raises(ReaderTooSlow, match=f"{UNPACED.size + 3} bytes .* took none of them for 0.01 s"):
            await reply.take()

    run(test, stall_limit=0.01)


def test_one_byte_less_may_wait_for_ever() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.chunk(bytes(UNPACED.size))
        assert reply._stall is None
        reply.chunk(b"1")
        assert reply._stall is not None

    run(test)


def test_a_client_that_takes_something_has_time_again() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        for _ in range(3):
            reply.chunk(bytes(UNPACED.size))
        chunks = aiter(reply)
        before = reply._stall
        assert before is not None
        await anext(chunks)
        after = reply._stall
        assert before._timer.cancelled()
        assert after is not None
        await anext(chunks)
        assert after._timer.cancelled()
        assert reply._stall is None

    run(test)


def test_an_answer_that_is_complete_and_not_read_is_dropped_too() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(bytes(UNPACED.size + 1))
        job.finish(200)
        stall = reply._stall
        assert stall is not None
        while not reply._error:
            await asyncio.sleep(0.01)
        assert not job.cancelled
        assert not reply.whole
        with pytest.raises(ReaderTooSlow):
            await reply.take()

    run(test, stall_limit=0.01)


def test_one_chunk_may_be_of_any_size_but_not_the_one_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_buffer, "UNPACED", StreamBuffers(1000 // BEHIND))

    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.start(200, "", [])
        reply.chunk(bytes(5000))
        assert not job.cancelled
        reply.chunk(b"1")
        assert job.cancelled
        reply.chunk(b"2")
        with pytest.raises(ReaderTooSlow, match=r"5001 bytes .* more slowly"):
            await reply.take()

    run(test)


def test_a_reader_that_leaves_cancels_the_job() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        reply.chunk(bytes(2 * UNPACED.size))
        stall = reply._stall
        reply.close()
        reply.close()
        assert job.cancelled
        assert stall is not None
        assert stall._timer.cancelled()
        assert not reply._chunks

    run(test)


def test_a_reader_that_leaves_after_the_end_cancels_nothing() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        job.finish(200)
        reply.close()
        assert not job.cancelled

    run(test)


def test_a_closed_buffer_needs_no_garbage_collector() -> None:
    async def test(reply: ReplyBuffer, job: Job) -> None:
        mine = ReplyBuffer()
        its_job = _Job("id", "m", None, [], [], mine)
        mine.job = its_job
        gone = weakref.ref(its_job)
        mine.close()
        del mine, its_job
        assert gone() is None

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


class _Job(Job):
    __slots__ = ("__weakref__",)


class _Tell:
    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def jobs_ended(self, jobs: list[Job]) -> None:
        self._event.set()


# -- a handler that waits for its reader --


class PacedJob(Job):
    """A job of which the worker sends chunks."""

    def stream(self) -> StreamBuffers:
        """Its reader waits for it."""
        buffers = self.begin()
        self.reply._begin_reading()
        return buffers

    def begin(self) -> StreamBuffers:
        buffers, self.grants = StreamBuffers(), list[int]()
        self.credit = StreamCredit(buffers, self.grants.append)
        self.sink.start(200, "", [])
        return buffers

    @property
    def reply(self) -> ReplyBuffer:
        assert isinstance(self.sink, ReplyBuffer)
        return self.sink

    def chunk(self, size: int) -> None:
        self.sink.chunk(bytes(size))
        if self.credit is not None and not self.credit.held:  # as BatchRunner does
            self.credit.took(size)


def run_paced(test: Callable[[ReplyBuffer, PacedJob], Awaitable[None]], stall_limit: float = 1000) -> None:
    async def main() -> None:
        reply = ReplyBuffer(stall_limit)
        reply.job = job = PacedJob("id", "m", None, [], [], reply)
        await asyncio.wait_for(test(reply, job), 120)
        reply.close()

    asyncio.run(main())


def test_the_handler_hears_what_the_reader_has_taken() -> None:
    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        buffers = job.stream()
        job.chunk(FIRST)
        assert job.grants == []
        await reply.take()
        assert job.grants == [FIRST + buffers.size]
        job.chunk(FIRST)
        job.chunk(FIRST)
        chunks = aiter(reply)
        await anext(chunks)
        reply.close()
        assert job.grants == [FIRST + buffers.size], "nobody reads the rest"
        assert buffers.left == StreamBuffers().left

    run_paced(test)


def test_a_reader_for_which_the_handler_waits_has_some_seconds() -> None:
    """However little waits for it."""

    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        job.stream()
        job.chunk(FIRST - 1)
        assert reply._stall is None
        job.chunk(1)
        assert reply._stall is not None
        while not job.cancelled:
            await asyncio.sleep(0.001)
        with pytest.raises(ReaderTooSlow, match=f"{FIRST} bytes .* took none of them"):
            await reply.take()

    run_paced(test, stall_limit=0.01)


@pytest.mark.parametrize("stall_limit", [0.01, 1000])
def test_nobody_watches_a_reader_that_has_left_or_lost_the_rest(stall_limit: float) -> None:
    """A timer that was set again would hold the reply, and its connection, for ever."""

    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        job.stream()
        job.chunk(FIRST)
        if stall_limit == 0.01:
            while not job.cancelled:
                await asyncio.sleep(0.001)
        else:
            reply.close()
        assert reply._stall is None
        job.chunk(1)
        assert reply._stall is None

    run_paced(test, stall_limit)


def test_a_reader_that_takes_something_has_the_seconds_again() -> None:
    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        buffers = job.stream()
        for _ in range(2):
            job.chunk(FIRST)
        first = reply._stall
        assert first is not None
        chunks = aiter(reply)
        await anext(chunks)
        assert first._timer.cancelled()
        assert reply._stall is None
        while not (job.credit and job.credit.spent):
            job.chunk(buffers.size)
        second = reply._stall
        assert second is not None
        await anext(chunks)
        assert reply._stall is not second
        assert reply._stall is not None, "more than its size still waits"

    run_paced(test)


def test_a_reader_too_far_behind_a_handler_that_cannot_wait_for_it() -> None:
    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        buffers = job.stream()
        for _ in range(BEHIND):
            job.chunk(buffers.size)
        assert not job.cancelled
        job.chunk(1)
        assert job.cancelled
        with pytest.raises(ReaderTooSlow, match="no more than 16 times stream_buffer_size may wait"):
            await reply.take()

    run_paced(test)


def test_after_the_end_no_handler_waits() -> None:
    """Then a reader may take its time, unless more than the size of the buffer waits for it."""

    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        buffers = job.stream()
        job.chunk(FIRST)
        assert job.credit is not None
        assert (job.credit.spent, reply._stall is None) == (True, False)
        job.credit.end()
        reply.end()
        assert (job.credit.spent, reply._stall) == (False, None)
        await reply.take()
        assert job.grants == []
        assert buffers.left == StreamBuffers().left

    run_paced(test)


@pytest.mark.parametrize("read", ["head", "take", "chunks"])
def test_the_handler_does_not_wait_for_a_reader_that_has_not_begun(read: str) -> None:
    """It reads another reply first, whose handler may wait for the same worker."""

    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        buffers = job.begin()
        for _ in range(4):
            job.chunk(buffers.size)
        assert job.credit is not None
        assert not job.credit.held
        assert job.grants[-1] == 5 * buffers.size
        assert reply._stall is not None
        if read == "head":
            await reply.head()
        elif read == "take":
            await reply.take()
        else:
            await anext(aiter(reply))
        assert job.credit.held
        assert job.credit.room == {"head": 5, "take": 1, "chunks": 4}[read] * buffers.size
        assert not job.credit.spent
        reply.close()
        assert buffers.left == StreamBuffers().left

    run_paced(test)


def test_what_a_reply_without_a_body_drops_is_taken() -> None:
    """Its handler may go on to its end."""

    async def test(reply: ReplyBuffer, job: PacedJob) -> None:
        job.stream()
        job.chunk(FIRST)
        reply._drop()
        assert job.grants

    run_paced(test)
