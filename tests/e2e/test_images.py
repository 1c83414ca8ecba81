"""Images of requests through a real server: to the worker as they came, or refused by it before."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.file_server import FileServer, file_server
from tests.frontend.generation.images.samples import data_url, png

pytestmark = pytest.mark.e2e

PROPERTIES = "allowed_image_hosts=127.0.0.1,*.example\nmax_images=3\nmax_image_size=20000\nimage_fetch_timeout=6"
CHAT = "/v1/chat/completions"
FILE = png(more=10_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("images")
    store = new_store(folder)
    pack_service("sees", store)
    pack_service("parrot", store)
    with run_server(folder, "--models", "sees.mar", "parrot.mar", properties=PROPERTIES) as running:
        yield running


@pytest.fixture(scope="module")
def web() -> Iterator[FileServer]:
    with file_server() as found:
        yield found


def told(file: bytes = FILE, size: str = "3x2") -> str:
    return f"image/png {size} {len(file)} {hashlib.sha256(file).hexdigest()[:8]}"


def ask(server: RunningServer, *urls: str, model: str = "sees") -> httpx.Response:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    messages = [{"role": "user", "content": [{"type": "text", "text": "what?"}, *parts]}]
    return server.inference.post(CHAT, json={"model": model, "messages": messages})


def error(reply: httpx.Response) -> str:
    assert reply.status_code == 400, reply.text
    message: str = reply.json()["error"]["message"]
    return message.rpartition("image_url: ")[2]


def test_chat(server: RunningServer, web: FileServer) -> None:
    reply = ask(server, data_url(FILE), web.redirect("/away", web.put("/a.png", png(7, 5))))
    seen = reply.json()["choices"][0]["message"]["content"]
    assert seen == f"{told()}; {told(png(7, 5), '7x5')}; text+image+image"


def test_responses(server: RunningServer) -> None:
    image = {"type": "input_image", "image_url": data_url(FILE), "detail": "high"}
    reply = server.inference.post(
        "/v1/responses", json={"model": "sees", "input": [{"role": "user", "content": [image]}]}
    )
    assert reply.json()["output"][0]["content"][0]["text"] == f"{told()}; image"
    assert reply.headers["x-msx-ignored"] == "input[0].content[0].detail"


def test_tgi_and_tokens(server: RunningServer, web: FileServer) -> None:
    inputs = f"What is ![]({web.put('/b.png', FILE)})?"
    reply = server.inference.post("/generate", json={"inputs": inputs, "model": "sees"})
    assert reply.json() == {"generated_text": f"{told()} at 8; What is ?"}
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": data_url(FILE)}]}]
    reply = server.inference.post("/chat_tokenize", json={"messages": messages, "model": "sees"})
    assert reply.json()["templated_text"] == f"{told()}; image"


def test_what_is_refused(server: RunningServer, web: FileServer) -> None:
    bomb, large = data_url(png(60_000, 60_000)), png(more=20_000)
    assert "60000x60000 = 3600000000 pixels" in error(ask(server, bomb))
    assert "at most 20000 bytes are allowed" in error(ask(server, data_url(large)))
    assert "at most 20000 bytes are allowed" in error(ask(server, web.endless("/endless")))
    assert error(ask(server, data_url(b"<svg/>", "image/svg+xml"))) == "the file is no PNG, JPEG, WebP or GIF"
    assert error(ask(server, *[bomb] * 3)) == "this model reads at most 2 images in a request"
    assert error(ask(server, web.put("/text", b"hello"))) == "the file is no PNG, JPEG, WebP or GIF"
    assert "HTTP 404" in error(ask(server, f"{web.url}/none"))


def test_hosts_that_are_refused(server: RunningServer, web: FileServer) -> None:
    management = server.info["management"].replace("127.0.0.1", "localhost")
    for url in (f"{management}/models", "http://169.254.169.254/latest/meta-data", "https://example.org/x.png"):
        for asked in (url, web.redirect("/away-again", url)):
            assert "is not in allowed_image_hosts of the server's config.properties" in error(ask(server, asked))
    assert "expected a data: URL, or one of http or https" in error(ask(server, "file:///etc/passwd"))


def test_other_requests_go_on_while_a_host_is_slow(server: RunningServer, web: FileServer) -> None:
    released = threading.Event()
    url = web.hang("/slow", released)
    try:
        with ThreadPoolExecutor(1) as thread:
            slow = thread.submit(ask, server, url)
            assert ask(server, data_url(FILE)).status_code == 200
            assert "it did not come within image_fetch_timeout, 6 s" in error(slow.result())
    finally:
        released.set()


def test_models_that_read_text_alone(server: RunningServer) -> None:
    reply: Any = ask(server, data_url(FILE), model="parrot").json()["error"]
    assert reply["message"] == "messages[0].content[1]: expected a part of the type text; this model reads no image_url"


def test_a_plain_prediction_has_no_images(server: RunningServer) -> None:
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": "http://127.0.0.1:1/x"}]}]
    reply = server.inference.post("/predictions/sees", json={"messages": messages})
    assert (reply.status_code, "/v1/chat/completions takes images" in reply.text) == (400, True)
