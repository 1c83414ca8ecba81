from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_net.grpc.codes import Code
from msx_net.grpc.direct.framing import MessageReader, ReceivedMessage, framed
from msx_net.grpc.refused import Refused


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 230)))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(framed, messages))
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader = MessageReader(40)
    received = [one for start, end in pairwise(edges) for one in reader.feed(data[start:end])]
    assert received == [ReceivedMessage(False, message) for message in messages]
    reader.end()


def test_a_message_that_is_not_complete() -> None:
    reader = MessageReader(10)
    assert list(reader.feed(framed(b"abc")[:-1])) == []
    with pytest.raises(Refused, match="ends in the middle of a message"):
        reader.end()
    assert list(reader.feed(b"c")) == [ReceivedMessage(False, b"abc")]


def test_compressed_messages_are_marked() -> None:
    assert list(MessageReader(10).feed(b"\1\0\0\0\1z")) == [ReceivedMessage(True, b"z")]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"\0\0\0\0\x0b", Code.RESOURCE_EXHAUSTED, "Received message larger than max (11 vs. 10): raise max_request"),
        (b"\0\xff\xff\xff\xff", Code.RESOURCE_EXHAUSTED, "larger than max (4294967295 vs. 10)"),
        (b"\2\0\0\0\1", Code.INTERNAL, "the flag 2"),
    ],
)
def test_what_is_refused_before_its_body_is_there(data: bytes, code: Code, message: str) -> None:
    with pytest.raises(Refused) as caught:
        list(MessageReader(10).feed(data))
    assert caught.value.code is code
    assert message in caught.value.message
