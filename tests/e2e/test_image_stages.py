"""Three stages as Mosec's users have them, Pillow, a MindIR and JSON, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import RunningServer, new_store, run_server
from tests.http2_transport import Http2Transport
from tests.mindspore_scripts import run_mindspore

pytest.importorskip("mindspore")
Image = pytest.importorskip("PIL.Image")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

EXAMPLE = Path(__file__).parents[2] / "examples" / "image-stages"
COLOURS = {"red": (220, 20, 30), "green": (10, 190, 20), "blue": (20, 20, 200), "dark": (5, 5, 5), "bright": (250,) * 3}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("images")
    store = new_store(folder)
    run_mindspore(EXAMPLE / "export.py", str(folder), folder=folder)
    files = [EXAMPLE / "images.py", folder / "model.mindir"]
    config, extra = str(EXAMPLE / "model-config.yaml"), ",".join(map(str, files))
    pack(PackOptions(model_name="images", config_file=config, extra_files=extra, export_path=store))
    with run_server(folder, "--models", "images.mar") as running:
        yield running


def image(colour: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 48), COLOURS[colour]).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("transport", [httpx.AsyncHTTPTransport, Http2Transport])
@pytest.mark.parametrize("path", ["/inference", "/predictions/images"])
def test_images(server: RunningServer, path: str, transport: Any) -> None:
    asked = [*COLOURS] * 4

    async def test() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=transport(), base_url=server.info["inference"], timeout=60) as client:
            first = await client.post(path, content=image(asked[0], "JPEG"))  # one connection over HTTP/2
            return [first, *await asyncio.gather(*(client.post(path, content=image(one)) for one in asked[1:]))]

    replies = asyncio.run(test())
    assert {reply.http_version for reply in replies} == {"HTTP/2" if transport is Http2Transport else "HTTP/1.1"}
    assert [reply.json().get("label") or reply.text for reply in replies] == asked
    assert sum(replies[0].json()["scores"].values()) == pytest.approx(1)


def test_what_is_not_an_image_is_told_by_its_stage(server: RunningServer) -> None:
    reply = server.predict("images", b"not an image")
    assert (reply.status_code, reply.headers["x-stage"]) == (400, "decode")
    assert reply.json()["message"].startswith("Error executing decode: body: not an image that Pillow can read")
    assert server.predict("images", image("blue")).json()["label"] == "blue"
    assert server.metric("msx_requests_total", model="images/decode", code="400") == 1
