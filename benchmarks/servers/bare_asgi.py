"""A function behind uvicorn, the lower limit of what a server on ASGI costs: no worker, token, metric or log line.

uvicorn, uvloop and httptools are those of this environment: the highest that MSX allows, unless something holds them
back.

python -m benchmarks.servers.bare_asgi PORT
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn

from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running

PATH = "/"
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
TYPE = (b"content-type", b"application/octet-stream")


@contextlib.contextmanager
def serve_echo() -> Iterator[tuple[Address, int]]:
    """Its address and its process's id."""
    address = Address("127.0.0.1", free_ports(1)[0])
    command = [sys.executable, "-m", __name__, str(address.port)]
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
        with running("The bare ASGI server", command, Path(folder), address, PATH, environment=environment) as pid:
            yield address, pid


async def echo(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    body = await whole_body(receive)
    headers = [TYPE, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def whole_body(receive: Receive) -> bytes:
    """All chunks; a small body comes in one, which is not copied."""
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    return body


def main(port: int) -> None:
    uvicorn.run(
        echo,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
