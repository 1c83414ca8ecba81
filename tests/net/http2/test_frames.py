from __future__ import annotations

import pytest

from msx_net.http2 import frames
from msx_net.http2.errors import ConnectionFault, ErrorCode
from tests.net.http2.peer import split


@pytest.mark.parametrize(
    ("size", "sizes"), [(0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (25, [10, 10, 5])]
)
@pytest.mark.parametrize("end", [True, False])
def test_a_long_block_goes_in_several_frames(size: int, sizes: list[int], end: bool) -> None:
    block = bytes(range(size))
    parts = list(split(frames.header_frames(5, block, end=end, max_size=10)))
    assert [len(part.payload) for part in parts] == sizes
    assert b"".join(part.payload for part in parts) == block
    assert [part.kind for part in parts] == [frames.HEADERS] + [frames.CONTINUATION] * (len(sizes) - 1)
    assert [bool(part.flags & frames.END_HEADERS) for part in parts] == [False] * (len(sizes) - 1) + [True]
    assert bool(parts[0].flags & frames.END_STREAM) == end
    assert {part.stream_id for part in parts} == {5}


def test_padding() -> None:
    assert frames.without_padding(b"\x02ab\0\0") == b"ab"
    assert frames.without_padding(b"\x00") == b""
    for payload, code in [(b"", ErrorCode.FRAME_SIZE_ERROR), (b"\x02\0", ErrorCode.PROTOCOL_ERROR)]:
        with pytest.raises(ConnectionFault) as caught:
            frames.without_padding(payload)
        assert caught.value.code == code


def test_headers_without_padding_and_priority() -> None:
    flags = frames.PADDED | frames.HAS_PRIORITY
    assert frames.header_fragment(flags, 3, b"\x01" + b"\0\0\0\1\xff" + b"block" + b"\0") == b"block"
    with pytest.raises(ConnectionFault, match="depends on itself"):
        frames.header_fragment(frames.HAS_PRIORITY, 3, b"\x80\0\0\3\xff" + b"block")
    with pytest.raises(ConnectionFault, match="5 bytes"):
        frames.header_fragment(frames.HAS_PRIORITY, 3, b"\0\0")


def test_codes_have_names() -> None:
    assert ErrorCode.named(8) == "CANCEL"
    assert ErrorCode.named(77) == "code 77"
