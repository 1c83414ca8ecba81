"""HTTP/2 clients of others at a REST port: curl, nghttp, h2load; in clear text and over TLS, where ALPN chooses."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from msx_net.listening.address import Address
from msx_net.tls.identity import TlsIdentity
from msx_net.tls.listeners import ListenerTls
from tests.certificates import Certificate
from tests.contract.test_both_ways import Served, served
from tests.loops import run


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


async def output_of(*command: str, stdin: bytes = b"") -> tuple[int, str]:
    """The exit code, and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    written, _ = await process.communicate(stdin)
    assert process.returncode is not None
    return process.returncode, written.decode()


async def curl(one: Served, path: str, *options: str, body: bytes | None = None) -> str:
    """The body, the status and the version of HTTP."""
    data = () if body is None else ("--data-binary", "@-", "-H", "content-type: text/plain")
    command = ("curl", "-sS", "--max-time", "30", "-w", " %{http_code} %{http_version}", *options, *data)
    code, text = await output_of(*command, f"{one.addresses['inference']}{path}", stdin=body or b"")
    assert code == 0, text
    return text


@asynccontextmanager
async def over_tls(folder: Path) -> AsyncIterator[Served]:
    certificate = Certificate.make()
    tls = ListenerTls(TlsIdentity(certificate.pem, certificate.key_pem))
    async with served(folder, tls=tls, inference_address=Address("https", "127.0.0.1", 0)) as one:
        (folder / "ca.pem").write_bytes(certificate.pem)
        yield one


@needs("curl")
def test_curl_by_prior_knowledge(tmp_path: Path) -> None:
    http2 = "--http2-prior-knowledge"

    async def test() -> None:
        async with served(tmp_path / "one") as one:
            assert await curl(one, "/predictions/m", http2, body=b"hello") == "hello 200 2"
            assert await curl(one, "/predictions/m", http2, body=b"pieces") == "a worda word 200 2"
            assert (await curl(one, "/ping", http2)).endswith("200 2")
            assert (await curl(one, "/predictions/none", http2, body=b"x")).endswith("404 2")
            waits = await curl(one, "/predictions/m", http2, "-H", "expect: 100-continue", body=b"hello")
            assert waits == "hello 200 2"
            stream = b'{"model": "llm", "prompt": "x", "stream": true}'
            events = await curl(one, "/v1/completions", http2, body=stream)
            assert events.endswith("data: [DONE]\n\n 200 2")

    run(test())


@needs("curl")
def test_a_refused_body_of_a_client_that_is_still_writing(tmp_path: Path) -> None:
    """curl reads the answer, although it could not send all."""

    async def test() -> None:
        async with served(tmp_path / "one") as one:
            answer = await curl(one, "/predictions/m", "--http2-prior-knowledge", body=bytes(8 << 20))
            assert answer.endswith("413 2")

    run(test())


@needs("curl")
def test_an_offer_to_upgrade_is_declined(tmp_path: Path) -> None:
    """RFC 9113 has none: clients that offer it go on in HTTP/1.1."""

    async def test() -> None:
        async with served(tmp_path / "one") as one:
            assert await curl(one, "/predictions/m", "--http2", body=b"hello") == "hello 200 1.1"

    run(test())


@needs("curl")
def test_alpn_chooses(tmp_path: Path) -> None:
    async def test() -> None:
        async with over_tls(tmp_path / "one") as one:
            trust = ("--cacert", str(tmp_path / "one" / "ca.pem"))
            assert await curl(one, "/predictions/m", *trust, "--http2", body=b"hello") == "hello 200 2"
            assert await curl(one, "/predictions/m", *trust, "--http1.1", body=b"hello") == "hello 200 1.1"

    run(test())


@needs("h2load")
def test_h2load(tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * 128)

    async def load(one: Served, *options: str) -> str:
        address = f"{one.addresses['inference']}/predictions/m"
        return (await output_of("h2load", "-n", "500", "-d", str(body), *options, address))[1]

    async def test() -> None:
        async with served(tmp_path / "one") as one:
            for options in (("-c", "1", "-m", "32"), ("-c", "4", "-m", "100", "-w", "16"), ("-c", "8", "--h1")):
                said = await load(one, *options)
                assert re.search("500 succeeded, 0 failed, 0 errored", said), said
                assert "status codes: 500 2xx" in said

    run(test())


@needs("nghttp")
def test_nghttp(tmp_path: Path) -> None:
    """It sends priorities, and trailers if it is told to."""
    body = tmp_path / "body"
    body.write_bytes(b"hello")

    async def test(*options: str) -> Any:
        async with served(tmp_path / "one") as one:
            address = f"{one.addresses['inference']}/predictions/m"
            return await output_of("nghttp", "-d", str(body), "--trailer", "x-checksum: 1", *options, address)

    assert run(test()) == (0, "hello")
