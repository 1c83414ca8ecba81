import gzip
import zlib

import pytest

from msx_net.grpc.direct.compression import InvalidData, decompress

PACKED = {"gzip": gzip.compress(b"x" * 1000), "deflate": zlib.compress(b"x" * 1000)}


@pytest.mark.parametrize("encoding", PACKED)
def test_up_to_the_limit(encoding: str) -> None:
    assert decompress(PACKED[encoding], encoding, 1000) == b"x" * 1000
    assert decompress(PACKED[encoding], encoding, 999) is None
    assert decompress(b"", encoding, 0) == b""


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("data", [b"nonsense", b"cut"])
def test_damaged(encoding: str, data: bytes) -> None:
    with pytest.raises(InvalidData):
        decompress(PACKED[encoding][:-5] if data == b"cut" else data, encoding, 1000)


def test_a_bomb_is_not_unpacked() -> None:
    assert decompress(gzip.compress(bytes(10 << 20)), "gzip", 1000) is None
