"""Images of every API family to a model of vLLM's engine: of a stub, and of the real one in the long lane."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, run_server
from tests.file_server import FileServer, file_server
from tests.frontend.generation.images.samples import data_url, png
from tests.interpreters import install_package, new_interpreter, site_packages
from tests.vllm.conftest import STUB
from tests.vllm.pictures import BLUE, picture
from tests.vllm.served import NEEDED, PYTHON
from tests.vllm.test_real import require_torchvision
from tests.vllm.tiny_vision_model import make_tiny_vision_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CONFIG = """
python: vllm
vllm:
  enforce-eager: true
  dtype: float32
  max-model-len: 256
  max-num-seqs: 8
  kv-cache-memory-bytes: 67108864
  limit-mm-per-prompt: {image: 2, audio: 0, video: 0}
"""
PAGE = Path(__file__).parents[2] / "docs" / "image-requests.md"
SLOW = 600.0
"""Seconds for the start of the real one."""
RED_URL, BLUE_URL = data_url(picture().data), data_url(picture(BLUE).data)


@pytest.fixture(scope="module", params=["stub", pytest.param("real", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with tempfile.TemporaryDirectory(prefix="e-", dir="/tmp") as name:
        here = Path(name)
        python = _stub(here) if request.param == "stub" else _real()
        folder = make_tiny_vision_model(here / "eyes")
        (folder / "model-config.yaml").write_text(CONFIG)
        new_store(here)
        keys = f"pythons=vllm={python}\nallowed_image_hosts=127.0.0.1"
        with run_server(here, "--huggingface", f"eyes={folder}", properties=keys, ready=False) as running:
            running.wait_ready(SLOW)
            yield running


@pytest.fixture(scope="module")
def web() -> Iterator[FileServer]:
    with file_server() as found:
        yield found


def _stub(here: Path) -> Path:
    python, site = new_interpreter(here / "other"), site_packages(here / "other")
    install_package(site, "vllm", "0.32.0")
    (site / "stub.pth").write_text(f"{STUB}\n")
    return python


def _real() -> str:
    if not PYTHON:
        pytest.skip(NEEDED)
    require_torchvision()
    return PYTHON


def messages(*urls: str) -> list[dict[str, Any]]:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": "what?"}, *parts]}]


def ask(server: RunningServer, *urls: str, **more: Any) -> httpx.Response:
    body = {"model": "eyes", "messages": messages(*urls), "temperature": 0, "max_tokens": 4, **more}
    return server.inference.post("/v1/chat/completions", json=body)


def tokens(reply: httpx.Response) -> int:
    assert reply.status_code == 200, reply.text
    count: int = reply.json()["usage"]["prompt_tokens"]
    return count


def text(reply: httpx.Response) -> str:
    found: str = reply.json()["choices"][0]["message"]["content"]
    return found


def refusal(reply: httpx.Response) -> str:
    assert reply.status_code == 400, reply.text
    message: str = reply.json()["error"]["message"]
    return message


def test_every_family_hands_the_same_prompt_to_vllm(server: RunningServer, web: FileServer) -> None:
    """Its tokens are those of the text and of the image."""
    count = tokens(ask(server, RED_URL))
    assert count > tokens(ask(server)) + 1
    assert tokens(ask(server, web.put("/red.png", picture().data))) == count
    content = [{"type": "input_text", "text": "what?"}, {"type": "input_image", "image_url": RED_URL}]
    body = {"model": "eyes", "input": [{"role": "user", "content": content}], "max_output_tokens": 16, "temperature": 0}
    reply = server.inference.post("/v1/responses", json=body)
    assert reply.json()["usage"]["input_tokens"] == count
    reply = server.inference.post("/tokenize", json={"model": "eyes", "messages": messages(RED_URL)})
    assert reply.json()["count"] == count
    reply = server.inference.post("/chat_tokenize", json={"model": "eyes", "messages": messages(RED_URL)})
    assert len(reply.json()["tokenize_response"]) == count


def test_tgi(server: RunningServer) -> None:
    for place in (f"what?![]({RED_URL})", f"![]({RED_URL})what?"):
        parameters = {"max_new_tokens": 4, "details": True, "decoder_input_details": True}
        reply = server.inference.post("/generate", json={"model": "eyes", "inputs": place, "parameters": parameters})
        assert reply.status_code == 200, reply.text
        assert reply.json()["details"]["generated_tokens"] == 4
    reply = server.inference.post(
        "/v1/completions", json={"model": "eyes", "prompt": f"![]({RED_URL})", "max_tokens": 1}
    )
    assert reply.status_code == 200  # a plain completion has text alone


def test_a_client_that_leaves_takes_no_image_from_others(server: RunningServer) -> None:
    before = text(ask(server, BLUE_URL))
    body = {"model": "eyes", "messages": messages(BLUE_URL), "max_tokens": 200, "ignore_eos": True, "stream": True}
    with server.inference.stream("POST", "/v1/chat/completions", json=body) as stream:
        next(stream.iter_lines())
    long = ask(server, BLUE_URL, max_tokens=9999)
    assert "max_tokens: This model's maximum context length is 256 tokens" in refusal(long)
    assert text(ask(server, BLUE_URL)) == before


@pytest.mark.long
def test_the_example_of_the_page(server: RunningServer, tmp_path: Path) -> None:
    """vLLM's environment has the client."""
    if not PYTHON:
        pytest.skip(NEEDED)
    (tmp_path / "cat.png").write_bytes(picture().data)
    code = (
        PAGE.read_text()
        .split("```python\n")[1]
        .split("```")[0]
        .replace("http://127.0.0.1:8080", str(server.info["inference"]))
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip()


def test_what_is_refused(server: RunningServer) -> None:
    assert "this model reads at most 2 images in a request" in refusal(ask(server, *[RED_URL] * 3))
    assert "60000x60000 = 3600000000 pixels" in refusal(ask(server, data_url(png(60_000, 60_000))))
    damaged = refusal(ask(server, RED_URL, data_url(picture(BLUE, cut=60).data)))
    assert damaged.startswith("messages[0].content[2]: not an image that Pillow can read:")
    video = [{"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}]
    reply = ask(server, messages=[{"role": "user", "content": video}])
    assert "this model reads no video_url" in refusal(reply)
    part = {"type": "image_url", "image_url": {"url": RED_URL}}
    reply = server.predict("eyes", {"messages": [{"role": "user", "content": [part]}]})
    assert (reply.status_code, "/v1/chat/completions takes images" in reply.text) == (400, True)
