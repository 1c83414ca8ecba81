"""The wait for a job's end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_client import AsyncClient, Client

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(("timeout", "asked"), [(3.0, "1.500"), (120.0, "30.000")])
def test_a_look_is_shorter_than_the_clients_time_out(timeout: float, asked: str) -> None:
    waits: list[str] = []

    def answer(call: Any, timeout: float | None) -> dict[str, Any]:
        waits.append(call.params["wait"])
        return {"state": "done"}

    async def answer_later(call: Any, timeout: float | None) -> dict[str, Any]:
        return answer(call, timeout)

    async def test() -> None:
        async with AsyncClient(URL, timeout=timeout) as client:
            job = client.jobs.get("job_1")
            job._run = answer_later
            await job.wait(100)

    with Client(URL, timeout=timeout) as client:
        job = client.jobs.get("job_1")
        job._run = answer
        job.wait(100)
    asyncio.run(test())
    assert waits == [asked] * 2
