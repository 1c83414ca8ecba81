from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.errors import BadRequest, PayloadTooLarge
from msx_frontend.net.http.compression import UnknownEncoding, accepted, compress, decompress

MAKE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
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
        (b"x", "The body is no gzip"),
        (WHOLE[:-1], "it ends too early"),
        (WHOLE + WHOLE, "it goes on after its end"),
    ],
    ids=["nonsense", "cut", "twice"],
)
def test_what_is_not_gzip(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        decompress(body, "gzip", 100)


@pytest.mark.parametrize("encoding", ["br", "gzip, deflate", "zstd"])
def test_other_encodings(encoding: str) -> None:
    with pytest.raises(UnknownEncoding, match="is not known here; gzip and deflate are"):
        decompress(b"x", encoding, 100)


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("Deflate", "deflate"),
        ("gzip, deflate, br", "gzip"),
        ("gzip;q=0.2, deflate;q=0.5", "deflate"),
        ("gzip;q=0", None),
        ("*", "gzip"),
        ("gzip;q=x", None),
    ],
)
def test_what_a_client_accepts(header: str, encoding: str | None) -> None:
    assert accepted(header) == encoding
