"""msx_net serves without the server: in a process that cannot import it, to clients that are not ours."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import grpc
import httpx

from tests.http2_transport import Http2Transport

ROOT = Path(__file__).parents[2]
LIMIT = 120.0
"""Seconds."""

ANSWERS = [
    ("GET", "/words", b"", 200, b'["hey"]'),
    ("POST", "/shout", b"hello", 200, b"HELLO"),
    ("POST", "/shout", b"", 400, b"There is nothing to shout."),
    ("POST", "/shout", b"x" * 1001, 413, b"max_request_size"),
    ("GET", "/nothing", b"", 404, b"Requested resource is not found"),
]


async def check_http(address: str, transport: httpx.AsyncBaseTransport, version: str) -> None:
    async with httpx.AsyncClient(transport=transport, base_url=address, timeout=LIMIT) as client:
        for method, path, body, status, words in ANSWERS:
            reply = await client.request(method, path, content=body)
            assert (reply.status_code, reply.http_version) == (status, version)
            assert words in reply.content


async def check_grpc(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        method = channel.unary_unary("/shouting.Shouting/Shout", bytes, bytes)
        assert await method(b"hello", timeout=LIMIT) == b"HELLO"


async def check(http: str, calls: str) -> None:
    await check_http(http, httpx.AsyncHTTPTransport(), "HTTP/1.1")
    await check_http(http, Http2Transport(), "HTTP/2")
    await check_grpc(calls)


def test_it_serves_without_the_server() -> None:
    command = [sys.executable, "-m", "tests.net.alone_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        asyncio.run(check(*process.stdout.readline().split()))
        process.communicate(timeout=LIMIT)
    assert process.returncode == 0


def test_its_tests_run_without_the_server() -> None:
    others = re.compile(r"(from|import) (msx_frontend|tests\.frontend)")
    files = [path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]
    found = [str(path) for path in files if others.search(path.read_text())]
    assert found == []
