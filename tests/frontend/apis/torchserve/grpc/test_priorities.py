"""The class and the session of a call reach its jobs: of each method, and by both transports."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from msx_core.priorities import HIGH, LOW, NORMAL
from tests.frontend.net.grpc.harness import answer, request, serving


@pytest.mark.parametrize(("text", "priority"), [("high", HIGH), ("normal", NORMAL), ("low", LOW)])
@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
def test_each_method(text: str, priority: int, compression: grpc.Compression | None) -> None:
    """A compressed call is answered by a coroutine."""

    async def main() -> None:
        options = {"metadata": (("x-msx-priority", text), ("x-session-id", text)), "compression": compression}
        async with serving() as served:
            for ask in (served.predict, served.stream, served.stream2):
                call = ask(request(), **options)
                reading = asyncio.ensure_future(_answered(call))
                job = await served.registry.next_job()
                assert (job.priority, job.session()) == (priority, text)
                told = [value for name, value in job.headers if name == "x-msx-priority"]
                assert told == ([] if priority == NORMAL else [text]), "the worker's"
                answer(job, b"x")
                await reading

    asyncio.run(main())


async def _answered(call: object) -> None:
    if hasattr(call, "__aiter__"):
        async for _ in call:
            pass
    else:
        await call  # type: ignore[misc]
