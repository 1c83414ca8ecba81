"""Streams whose head leaves while an image is fetched: what fails then is told by an event."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

import msgspec
import pytest

from msx_core.held_bytes import HeldBytes
from tests.file_server import FileServer, file_server
from tests.frontend.generation.images.samples import limits, png
from tests.frontend.generation.speaker import ALL, words
from tests.frontend.generation.test_silent_streams import Asking, ways
from tests.loops import run, until
from tests.net.silence import COMMENT

CHAT = "/v1/chat/completions"
FILE = png(more=10_000)


def late(web: FileServer, released: threading.Event, status: int) -> str:
    """An image that comes when it is released."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        released.wait(60)
        handler.send_response(status)
        handler.send_header("content-length", str(len(FILE)))
        handler.end_headers()
        handler.wfile.write(FILE)

    web.routes["/late"] = answer
    return f"{web.url}/late"


@ways
@pytest.mark.parametrize(
    ("status", "room", "code"), [(200, 100_000, None), (404, 100_000, "HTTP 404"), (200, 9_000, "max_queued_bytes")]
)
def test_the_head_leaves_before_the_image_has_come(way: str, status: int, room: int, code: str | None) -> None:
    async def test() -> None:
        parts = [{"type": "image_url", "image_url": url}]
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": parts}]}
        models = {"m": msgspec.structs.replace(ALL, max_images=1)}
        asking = Asking(CHAT, way, body, models=models, script=[words("a")], held=HeldBytes(room), image_limits=allowed)
        await until(lambda: web.asked)
        asking.silence.passes()
        await asking.exchange.until_chunks(1)
        assert asking.exchange.body == COMMENT
        released.set()
        if code is None:
            await asking.ends()
        else:
            assert code in (await asking.breaks())["error"]["message"]
        assert (len(asking.speaker.jobs), asking.speaker.held.held) == (code is None, 0)

    released, allowed = threading.Event(), limits(allowed_image_hosts=("127.0.0.1",))
    with file_server() as web:
        url = late(web, released, status)
        run(test())
