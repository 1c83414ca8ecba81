"""`?customized=true`: the metadata that the handler returns about itself."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from msx_frontend.errors import ServiceError
from msx_frontend.job import DESCRIBE, Job
from msx_frontend.models.model_version import ModelVersion


class _CollectedAnswer:
    """A sink that collects one answer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.result: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        return None

    def chunk(self, data: bytes) -> None:
        self._data += data

    def end(self) -> None:
        if not self.result.done():
            self.result.set_result(bytes(self._data))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.chunk(data)
        self.end()

    def fail(self, error: ServiceError) -> None:
        if not self.result.done():
            self.result.set_exception(error)


async def customized_metadata(version: ModelVersion, number: str | None, request_id: str) -> Any:
    """Call the handler with the header `describe`. `number` is the requested version, if any.

    Raises ServiceError; 503 without a worker.
    """
    sink = _CollectedAnswer()
    headers = [("describe", "True"), ("explain", "False"), ("url_path", "")]
    job = Job(request_id, version.source.name, number, [], headers, sink, kind=DESCRIBE)
    version.submit(job)
    try:
        answer = await sink.result
    finally:
        job.cancel()
    try:
        return msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return answer.decode("utf-8", "replace")
