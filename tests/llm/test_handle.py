"""Deltas that need not wait for their reader's turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from msx_llm.handle import RequestHandle
from msx_llm.stats import RequestTimes
from msx_sdk.generation import GenerateDelta


def made() -> RequestHandle:
    return RequestHandle(lambda: None, RequestTimes())


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())


async def until_it_waits(reader: asyncio.Task[list[str]]) -> None:
    await asyncio.sleep(0)
    assert not reader.done()


async def texts(handle: RequestHandle) -> list[str]:
    return [delta.text async for delta in handle]


def test_a_delta_is_passed_on_while_the_reader_waits() -> None:
    async def test() -> None:
        handle, passed = made(), list[str]()

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            passed.append(delta.text)
            return True

        handle.offer_to(pass_on)
        handle.put(GenerateDelta(text="before"))
        reader = asyncio.create_task(texts(handle))
        await until_it_waits(reader)
        handle.put(GenerateDelta(text="a"))
        handle.put(GenerateDelta(text="b"))
        handle.end()
        assert await reader == ["before"]
        assert passed == ["a", "b"]

    run(test)


def test_what_has_to_wait_keeps_its_order() -> None:
    async def test() -> None:
        handle, all_ = made(), list[str]()
        slow = True

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            if not slow:
                all_.append(delta.text)
            return not slow

        async def read() -> list[str]:
            async for delta in handle:
                await asyncio.sleep(0)  # for the client
                all_.append(delta.text)
            return all_

        handle.offer_to(pass_on)
        reader = asyncio.create_task(read())
        await until_it_waits(reader)
        handle.put(GenerateDelta(text="a"))
        slow = False
        handle.put(GenerateDelta(text="b"))  # the reader has not taken the first one yet
        await asyncio.sleep(0)
        handle.put(GenerateDelta(text="c"))  # now it has, and holds it
        for _ in range(10):
            await asyncio.sleep(0)
        handle.put(GenerateDelta(text="d"))
        handle.end()
        assert await reader == ["a", "b", "c", "d"]

    run(test)


def test_what_cannot_be_passed_on_is_read() -> None:
    async def test() -> None:
        handle = made()

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            raise ConnectionError

        handle.offer_to(pass_on)
        reader = asyncio.create_task(texts(handle))
        await until_it_waits(reader)
        handle.put(GenerateDelta(text="a"))
        handle.end()
        assert await reader == ["a"]

    run(test)


@pytest.mark.parametrize("waits", [False, True])
def test_without_a_way_all_is_read(waits: bool) -> None:
    async def test() -> None:
        handle = made()
        reader = asyncio.create_task(texts(handle))
        if waits:
            await until_it_waits(reader)
        handle.put(GenerateDelta(text="a"))
        handle.end()
        assert await reader == ["a"]

    run(test)


def test_a_delta_that_others_have_too_is_passed_on_encoded_and_read_as_a_copy() -> None:
    async def test() -> None:
        handle, passed, shared = made(), list[bytes](), GenerateDelta(text="a")

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            passed.append(data)
            return len(passed) == 1

        handle.offer_to(pass_on)
        reader = asyncio.create_task(anext(handle))
        await asyncio.sleep(0)
        handle.put(shared, b"encoded")
        handle.put(shared, b"encoded")
        read = await reader
        assert passed == [b"encoded"] * 2
        assert read == shared
        assert read is not shared

    run(test)


def test_the_engine_is_on_another_thread() -> None:
    """Nothing is lost or read twice, and the order stays, however the threads take turns."""

    async def test() -> None:
        handle, all_ = made(), list[str]()

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            if int(delta.text) % 3:
                return False
            all_.append(delta.text)
            return True

        def write() -> None:
            for number in range(3000):
                handle.put(GenerateDelta(text=str(number)))
            handle.end()

        handle.offer_to(pass_on)
        writer = threading.Thread(target=write)
        writer.start()
        async for delta in handle:
            all_.append(delta.text)
        writer.join()
        assert all_ == [str(number) for number in range(3000)]

    run(test)


def test_behind_the_end_nothing_is_read() -> None:
    async def test() -> None:
        handle = made()
        handle.put(GenerateDelta(text="a"))
        handle.end()
        handle.put(GenerateDelta(text="b"))
        assert await texts(handle) == ["a"]

    run(test)


def test_only_a_request_that_has_not_ended_is_cancelled() -> None:
    cancelled: list[int] = []
    ended = RequestHandle(lambda: cancelled.append(1), RequestTimes())
    runs = RequestHandle(lambda: cancelled.append(2), RequestTimes())
    ended.end()
    for handle in (ended, runs):
        with handle:
            pass
    assert cancelled == [2]
