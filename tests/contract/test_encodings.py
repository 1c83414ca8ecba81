"""Content-Encoding of requests and replies, for several API families at once."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from backports import zstd

from tests.contract.test_both_ways import INPUTS, LIMIT, Ask, served
from tests.loops import run

PREDICT, INFER = "/predictions/m", "/v2/models/m/infer"
MAKE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}
OPEN: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "zstd": zstd.decompress,
}


class Heard(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(folder: Path, *asks: Ask, **settings: Any) -> list[Heard]:
    async def heard() -> list[Heard]:
        async with served(folder / "one", **settings) as one, httpx.AsyncClient(trust_env=False) as client:
            answers = [await one.ask(client, each) for each in asks]
            return [Heard(status, dict(headers), body) for status, _, headers, body in answers]

    return run(heard())


def encoded(path: str, body: bytes, encoding: str) -> Ask:
    return Ask("POST", path, MAKE.get(encoding, bytes)(body), (("content-encoding", encoding),))


@pytest.mark.parametrize("encoding", MAKE)
def test_requests_are_decompressed_for_all_but_torchserves_handlers(tmp_path: Path, encoding: str) -> None:
    infer, predicted = ask(tmp_path, encoded(INFER, INPUTS, encoding), encoded(PREDICT, b"a word", encoding))
    assert infer.status == 200
    assert OPEN[encoding](predicted.body) == b"a word"  # the handler echoes what it gets


@pytest.mark.parametrize("encoding", MAKE)
def test_by_key_also_for_torchserves_handlers(tmp_path: Path, encoding: str) -> None:
    infer, predicted = ask(
        tmp_path, encoded(INFER, INPUTS, encoding), encoded(PREDICT, b"a word", encoding), decompress_requests=True
    )
    assert (infer.status, predicted.body) == (200, b"a word")


def test_by_key_for_none(tmp_path: Path) -> None:
    infer, predicted = ask(
        tmp_path,
        encoded(INFER, INPUTS, "gzip"),
        encoded(PREDICT, b"a word", "gzip"),
        decompress_requests=False,
    )
    assert (infer.status, predicted.status) == (415, 200)
    assert b"decompress_requests=false in config.properties" in infer.body
    assert gzip.decompress(predicted.body) == b"a word"


@pytest.mark.parametrize("path", [INFER, PREDICT])
def test_what_cannot_be_decompressed(tmp_path: Path, path: str) -> None:
    bomb = encoded(path, bytes(LIMIT + 1), "zstd")
    unknown, invalid, large, identity = ask(
        tmp_path,
        encoded(path, b"x", "br"),
        Ask("POST", path, b"x", (("content-encoding", "gzip"),)),
        bomb,
        Ask("POST", path, INPUTS, (("content-encoding", "identity"),)),
        decompress_requests=True,
    )
    assert (unknown.status, invalid.status, large.status, identity.status) == (415, 400, 413, 200)
    assert b"in gzip, deflate or zstd" in unknown.body
    assert b"The body is not gzip" in invalid.body


def accepting(path: str, body: bytes, encoding: str) -> Ask:
    return Ask("POST", path, body, (("accept-encoding", encoding),))


@pytest.mark.parametrize("encoding", MAKE)
def test_replies_are_compressed_by_key(tmp_path: Path, encoding: str) -> None:
    large, small, pieces, infer = ask(
        tmp_path,
        accepting(PREDICT, b"large", encoding),
        accepting(PREDICT, b"a word", encoding),
        accepting(PREDICT, b"pieces", encoding),
        accepting(INFER, b'{"inputs": [], "how": "large"}', encoding),
        compress_replies=True,
    )
    assert (large.headers["content-encoding"], large.headers["vary"]) == (encoding, "accept-encoding")
    assert OPEN[encoding](large.body) == bytes(100_000)
    assert int(large.headers["content-length"]) == len(large.body) < 5_000
    assert "content-encoding" not in {*small.headers, *pieces.headers}
    assert infer.headers["content-encoding"] == encoding


def test_replies_are_not_compressed_without_the_key_or_the_clients_word(tmp_path: Path) -> None:
    large, infer, plain = ask(
        tmp_path,
        accepting(PREDICT, b"large", "gzip"),
        accepting(INFER, b'{"inputs": [], "how": "large"}', "gzip"),
        accepting(INFER, b'{"inputs": [], "how": "large"}', "br"),
    )
    assert "content-encoding" not in {*large.headers, *plain.headers}
    assert infer.headers["content-encoding"] == "gzip"  # KServe's own rule
