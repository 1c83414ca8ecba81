import asyncio
import contextlib

import pytest

from msx_core.service_errors import RequestCancelled, ServiceError
from msx_net.grpc.unary_reply import ResponseTooLarge, UnaryReply


async def _begun(*chunks: bytes, limit: int = 10) -> UnaryReply:
    answer = UnaryReply(limit)
    answer.start(200, "", [])
    for chunk in chunks:
        answer.chunk(chunk)
    return answer


@pytest.mark.parametrize("chunks", [(), (b"",), (b"one",), (b"one", b"", b"two")])
def test_all_chunks_are_the_answer(chunks: tuple[bytes, ...]) -> None:
    async def test() -> bytes:
        answer = await _begun(*chunks)
        assert not answer.ended.done()
        answer.end()
        await answer.ended
        return answer.data()

    assert asyncio.run(test()) == b"".join(chunks)


def test_an_error_counts_for_all_of_it_and_the_first_one_is_told() -> None:
    async def test() -> None:
        answer, first = await _begun(b"one"), RequestCancelled()
        answer.fail(first)
        answer.fail(ServiceError("the second"))
        answer.end()
        await answer.ended
        with pytest.raises(RequestCancelled) as raised:
            answer.data()
        assert raised.value is first

    asyncio.run(test())


def test_what_is_too_large_ends_at_once() -> None:
    async def test() -> None:
        answer = await _begun(b"12345", b"67890", limit=10)
        assert not answer.ended.done()
        answer.chunk(b"1")
        await answer.ended
        answer.chunk(b"more that was on its way")
        answer.end()
        with pytest.raises(ResponseTooLarge, match=r"more than max_response_size \(10 bytes\)"):
            answer.data()

    asyncio.run(test())


def test_the_end_of_a_call_whose_client_has_left() -> None:
    async def test() -> None:
        answer = await _begun(b"one")
        task = asyncio.ensure_future(answer.ended)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        answer.chunk(b"two")
        answer.end()
        answer.fail(RequestCancelled())

    asyncio.run(test())
