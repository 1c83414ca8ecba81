"""Digests, as hubs and stores say them."""

from __future__ import annotations

import hashlib

import pytest

from msx_frontend.archives.hub.digests import digest_of

DATA = bytes(range(256)) * 40


def parts(size: int) -> str:
    pieces = [hashlib.md5(DATA[at : at + size]).digest() for at in range(0, len(DATA), size)]
    return f"md5-parts:{hashlib.md5(b''.join(pieces)).hexdigest()}-{len(pieces)}:{size}"


@pytest.mark.parametrize(
    "said",
    [
        f"sha256:{hashlib.sha256(DATA).hexdigest()}",
        f"git:{hashlib.sha1(b'blob %d' % len(DATA) + bytes(1) + DATA).hexdigest()}",
        f"md5:{hashlib.md5(DATA).hexdigest()}",
        parts(1000),
        parts(len(DATA)),
        parts(len(DATA) // 4),
    ],
)
@pytest.mark.parametrize("step", [1, 700, 1 << 20])
def test_what_comes_is_compared(said: str, step: int) -> None:
    good, bad = digest_of(said, len(DATA)), digest_of(said, len(DATA))
    for at in range(0, len(DATA), step):
        good.update(DATA[at : at + step])
        bad.update(DATA[at : at + step].replace(b"\7", b"\x08"))
    assert good.matches()
    assert not bad.matches()


@pytest.mark.parametrize("said", ["", "etag:whatever"])
def test_a_file_without_a_digest_is_taken(said: str) -> None:
    digest = digest_of(said, 3)
    digest.update(b"abc")
    assert digest.matches()
