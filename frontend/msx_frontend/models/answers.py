"""Answers of jobs that the server itself asks for."""

import asyncio

from msx_core.service_errors import ServiceError


class CollectedAnswer:
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
