"""Jobs: requests that outlive their connection, and the server, for code on a loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msx_client.errors import MsxError
from msx_client.job_maker import ENDED, FOREVER, PAGE, Deferral, JobMaker, Marks, content_of, last_of
from msx_client.patience import Patience

if TYPE_CHECKING:
    from msx_client.call import Reply
    from msx_client.texts import ChatReply, Completion, TextPiece

T = TypeVar("T")
RunsCall = Callable[[Any, "float | None"], Awaitable[Any]]
StreamsCall = Callable[[Any, "float | None"], AsyncIterator[Any]]


class AsyncJobs:
    """Every method raises MsxError. Requests take what those of the client take; with `stream=True` the pieces of a
    text are read by `Job.stream`."""

    def __init__(self, run: RunsCall, stream: StreamsCall, maker: JobMaker) -> None:
        self._run, self._stream, self._maker = run, stream, maker

    async def predict(
        self,
        model: str,
        data: Any = b"",
        *,
        version: str | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        callback: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncJob[Any]:
        """Returns when the server has written the request to its disk. `callback`: a URL that is told of the end;
        `idempotency_key`: the same request with the same key again is the same job."""
        more = Marks(callback, idempotency_key)
        return await self._made(self._maker.predict(model, data, version, method, headers or {}, more))

    async def generate(
        self,
        model: str,
        prompt: str,
        *,
        callback: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> AsyncJob[Completion]:
        return await self._made(self._maker.generate(model, prompt, options, Marks(callback, idempotency_key)))

    async def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        callback: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> AsyncJob[ChatReply]:
        return await self._made(self._maker.chat(model, messages, options, Marks(callback, idempotency_key)))

    def get(self, id: str) -> AsyncJob[Any]:
        """A job by its id. Nothing is asked yet; its result is decoded by its content type."""
        from msx_client.http.content import decode

        return AsyncJob(id, self._run, self._stream, self._maker, decode)

    async def list(self, *, state: str = "") -> AsyncIterator[dict[str, Any]]:
        """The jobs of the key, the newest first, of one `state` or of all; pages are asked for as they are needed."""
        after, more = "", True
        while more:
            page = await self._run(self._maker.jobs.page(state, after, PAGE), None)
            for one in page["jobs"]:
                yield one
            after = last_of(page)
            more = bool(after)

    async def _made(self, made: Deferral) -> AsyncJob[Any]:
        return AsyncJob(await self._run(made.call, None), self._run, self._stream, self._maker, made.read)


class AsyncJob(Generic[T]):
    """Methods raise MsxError."""

    def __init__(
        self, id: str, run: RunsCall, stream: StreamsCall, maker: JobMaker, read: Callable[[Reply], T]
    ) -> None:
        self.id = id
        self._run, self._stream, self._maker, self._read = run, stream, maker, read

    async def status(self) -> dict[str, Any]:
        """Its `state`, `place`, times, `status` and `callback`."""
        return await self._look(0.0)

    async def wait(self, timeout: float = FOREVER) -> dict[str, Any]:
        """Until it has ended, for `timeout` seconds at most, also through restarts of the server; returns how it
        stands. Raises DeadlineError."""
        patience = Patience(timeout)
        while True:
            try:
                status = await self._look(min(self._maker.longest_look, patience.left))
                if status["state"] in ENDED:
                    return status
                pause = patience.next(f"the job {self.id} is {status['state']}")
            except MsxError as error:
                pause = patience.pause(error)
            await asyncio.sleep(pause)

    async def result(self, timeout: float = FOREVER) -> T:
        """Its answer, when it is there, as the request would have returned it; an error is raised as the request would
        have raised it."""
        await self.wait(timeout)
        found: T = await self._run(self._maker.jobs.result(self.id, self._read), None)
        return found

    def stream(self) -> AsyncIterator[TextPiece]:
        """The pieces of a text that was asked for with `stream=True`, from its beginning, while it is made."""
        return self._stream(self._maker.jobs.events(self.id), None)

    async def content(self) -> bytes:
        """The body of its reply, as it came. Raises UnavailableError where it has not ended."""
        found: bytes = await self._run(self._maker.jobs.result(self.id, content_of), None)
        return found

    async def cancel(self) -> str:
        """Cancel it, or forget one that has ended, together with its answer; returns "cancelled" or "forgotten"."""
        said = await self._run(self._maker.jobs.remove(self.id), None)
        return str(said["state"])

    async def _look(self, wait: float) -> dict[str, Any]:
        found: dict[str, Any] = await self._run(self._maker.jobs.show(self.id, wait), None)
        return found
