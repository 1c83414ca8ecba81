from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from msx_core.service_errors import BadRequest, PayloadTooLarge, UnknownEncoding
from msx_net.http.compression import accepted, compress, decompress, is_compressible

MAKE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}
WHOLE = gzip.compress(b"x")


@given(st.binary(max_size=200), st.sampled_from(sorted(MAKE)))
def test_round_trips(data: bytes, encoding: str) -> None:
    assert decompress(MAKE[encoding](data), encoding, 200) == data
    assert decompress(compress(data, encoding), encoding, 200) == data


@pytest.mark.parametrize("encoding", MAKE)
def test_the_limit_counts_what_comes_out(encoding: str) -> None:
    assert len(decompress(MAKE[encoding](bytes(1000)), encoding, 1000)) == 1000
    with pytest.raises(PayloadTooLarge, match=r"decompressed, is larger than max_request_size \(1000 bytes\)"):
        decompress(MAKE[encoding](bytes(1001)), encoding, 1000)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"x", "The body is not gzip"),
        (WHOLE[:-1], "it ends too early"),
        (WHOLE + WHOLE, "it goes on after its end"),
    ],
    ids=["nonsense", "cut", "twice"],
)
def test_what_is_not_gzip(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        decompress(body, "gzip", 100)


@pytest.mark.parametrize("encoding", MAKE)
def test_a_body_that_is_cut_or_goes_on(encoding: str) -> None:
    whole = MAKE[encoding](b"x" * 50)
    with pytest.raises(BadRequest, match=f"The body is not {encoding}: it ends too early"):
        decompress(whole[:-1], encoding, 100)
    with pytest.raises(BadRequest, match=f"The body is not {encoding}: it goes on after its end"):
        decompress(whole + b"x", encoding, 100)


@pytest.mark.parametrize("encoding", MAKE)
def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    bomb = MAKE[encoding](bytes(100 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(PayloadTooLarge):
            decompress(bomb, encoding, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_window_of_zstd_that_is_too_large() -> None:
    """It would make the server allocate a gigabyte for a body of some bytes."""
    wide: dict[int, int] = {zstd.CompressionParameter.window_log: 30}
    stream = zstd.ZstdCompressor(options=wide)
    body = stream.compress(b"x" * 1000) + stream.flush()
    with pytest.raises(BadRequest, match="The body is not zstd"):
        decompress(body, "zstd", 10_000)


def test_deflate_without_its_header() -> None:
    stream = zlib.compressobj(wbits=-15)
    assert decompress(stream.compress(b"raw") + stream.flush(), "deflate", 10) == b"raw"


def test_an_old_name() -> None:
    assert decompress(WHOLE, "x-gzip", 10) == b"x"


@pytest.mark.parametrize("encoding", ["br", "gzip, deflate", "x"])
def test_other_encodings(encoding: str) -> None:
    with pytest.raises(UnknownEncoding, match="send the body as it is, or in gzip, deflate or zstd") as caught:
        decompress(b"x", encoding, 100)
    assert caught.value.headers == (("accept-encoding", "gzip, deflate, zstd"),)


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("Deflate", "deflate"),
        ("gzip, deflate, br", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.5, *", "gzip"),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0, *", None),
        (",", None),
        ("gzip;q=0.2, deflate;q=0.5", "deflate"),
        ("gzip;q=0", None),
        ("*", "gzip"),
        ("gzip;q=x", None),
    ],
)
def test_what_a_client_accepts(header: str, encoding: str | None) -> None:
    assert accepted(header) == encoding


@pytest.mark.parametrize(
    ("headers", "compressible"),
    [
        ([], True),
        ([("Content-Type", "application/json")], True),
        ([("content-type", "image/svg+xml; charset=utf-8")], True),
        ([("content-type", "Image/PNG")], False),
        ([("content-type", "video/mp4; codecs=a")], False),
        ([("content-type", "application/zip")], False),
        ([("x", "y"), ("Content-Encoding", "br")], False),
        ([("cache-control", "private, No-Transform")], False),
    ],
)
def test_replies_that_are_smaller_when_compressed(headers: list[tuple[str, str]], compressible: bool) -> None:
    assert is_compressible(200, headers, 5000) is compressible
    assert not is_compressible(200, headers, 1000)
    assert not is_compressible(304, headers, 5000)
