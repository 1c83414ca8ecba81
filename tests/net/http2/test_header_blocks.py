from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.header_blocks import KEPT_BLOCKS, KEPT_LISTS, HeaderBlocks, encode_field, encode_headers
from msx_net.http2.headers import Headers
from tests.net.http2.peer import REQUEST

FIELDS = st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.binary(max_size=300)), max_size=8)


def blocks() -> HeaderBlocks:
    return HeaderBlocks(1 << 14)


@given(FIELDS)
def test_what_we_send_is_understood_and_changes_no_table(fields: Headers) -> None:
    decoder = Decoder()
    block = encode_headers([(b":status", b"200"), *fields])
    assert list(decoder.decode(block, raw=True)) == [(b":status", b"200"), *fields]
    assert not decoder.header_table.dynamic_entries


def test_blocks_can_be_joined() -> None:
    block = encode_headers([(b":status", b"200")]) + encode_field(b"x-request-id", b"1")
    assert list(Decoder().decode(block, raw=True)) == [(b":status", b"200"), (b"x-request-id", b"1")]


def test_a_block_that_comes_again_is_looked_up() -> None:
    ours, encoder = blocks(), Encoder()
    first, second, third = (ours.request(encoder.encode(REQUEST)) for _ in range(3))
    assert first.headers == second.headers == REQUEST
    assert second.headers is not first.headers, "the first block filled the table: the second is another"
    assert third.headers is second.headers


@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"long" * 200]), max_size=60), st.sampled_from([4096, 300, 60, 0]))
def test_what_is_remembered_is_what_would_have_been_decoded(values: list[bytes], size: int) -> None:
    ours, encoder, reference = blocks(), Encoder(), Decoder()
    for turn, value in enumerate(values):
        if turn == len(values) // 2:
            encoder.header_table_size = size
        block = encoder.encode([(b":method", b"POST"), (b":path", b"/"), (b"x-value", value)])
        assert ours.request(block).headers == list(reference.decode(block, raw=True))


def test_a_block_that_sets_the_size_of_the_table_does_so_each_time() -> None:
    """RFC 7541 §6.3. The third one sets it to 0 again, so that the fourth cannot add a field."""
    ours = blocks()
    to_none, to_some = b"\x20" + encode_headers(REQUEST), b"\x3f\x45" + encode_headers(REQUEST)
    for block in (to_none, to_some, to_none, encode_headers(REQUEST) + b"\x40\x01x\x01y"):
        ours.request(block)
    with pytest.raises(ConnectionFault, match="Invalid table index 62"):
        ours.request(b"\xbe")


def test_memory_is_bounded() -> None:
    ours = blocks()
    for number in range(3 * KEPT_BLOCKS):
        ours.request(encode_headers([*REQUEST, (b"x", b"%d" % number)]))
    ours.request(encode_headers([*REQUEST, (b"x", b"y" * 10_000)]))
    assert len(ours._kept) <= KEPT_BLOCKS
    assert max(map(len, ours._kept)) < 3_000


def test_a_bomb() -> None:
    """One long field in the table, then a byte for each time it is meant."""
    ours = blocks()
    ours.request(encode_headers(REQUEST) + b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4_000)
    with pytest.raises(ConnectionFault, match=r"more than 2 times as long as allowed \(16384 bytes\)") as caught:
        ours.request(encode_headers(REQUEST) + b"\xbe" * 2_000)
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "block", [b"\xff", b"\x80", b"\xfe", b"\x40", b"\x40\x05ab", b"\x00\x81\xff\x00", b"\x3f\xff\xff\x03"]
)
def test_what_is_not_a_block(block: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        blocks().request(block)
    assert caught.value.code == ErrorCode.COMPRESSION_ERROR


@given(st.binary(max_size=200))
def test_any_bytes_are_a_block_or_a_fault(block: bytes) -> None:
    ours = blocks()
    try:
        ours.request(block)
        ours.request(block)
    except ConnectionFault:
        pass


def test_kept_lists_are_bounded_together() -> None:
    """A block of few bytes may name an entry of 3,000 many times."""
    blocks = HeaderBlocks(1 << 16)
    blocks.request(Encoder().encode([*REQUEST[:3], (b"x-long", b"x" * 3000)]))
    for number in range(KEPT_BLOCKS - 1):
        request = blocks.request(b"\x82\x86\x04\x03/%02d" % number + b"\xbe" * 15)
        assert request.fault is None
        assert request.size > 45_000
    assert 0 < sum(one.size for one in blocks._kept.values()) <= KEPT_LISTS + request.size
