"""A real nginx before a server: with its defaults, and with the configuration of docs/proxy.md."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.free_ports import free_ports
from tests.frontend.net.grpc.harness import Request, Response

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx-light)"),
]

PAGE = Path(__file__).parents[2] / "docs" / "proxy.md"
DEFAULTS = "server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } }"
CUTS_AFTER = 3
"""Seconds of silence, instead of 60. The head of a handler's stream leaves up to a second after the heartbeat."""
HEARTBEAT = 0.2
COMMENT = b": \n\n"
MORE_THAN_A_MEBIBYTE = bytes(2 << 20)

CONFIGURATION = """
daemon off; user {user}; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
access_log {folder}/access.log; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
proxy_read_timeout {cuts_after}s;
{servers}
}}
"""


class Ports(NamedTuple):
    http: int
    grpc: int
    of_page: bool
    """The configuration of the page; else nginx's defaults."""


def of_page() -> str:
    """The blocks of the page, which read for longer than the test waits."""
    blocks = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    text = "\n".join(blocks)
    assert "proxy_read_timeout 130s" in text
    return text.replace("proxy_read_timeout 130s", f"proxy_read_timeout {CUTS_AFTER}s")


def with_ports(servers: str, address: str, ports: Ports) -> str:
    own = {"listen 80": f"listen 127.0.0.1:{ports.http}", "listen 81": f"listen 127.0.0.1:{ports.grpc}"}
    for theirs, ours in {**own, "127.0.0.1:8080": address.removeprefix("http://")}.items():
        servers = servers.replace(theirs, ours)
    return servers


@contextmanager
def nginx(folder: Path, address: str, *, page: bool) -> Iterator[Ports]:
    assert NGINX is not None
    http, of_grpc = free_ports(2)
    ports = Ports(http, of_grpc, page)
    servers = with_ports(of_page() if page else DEFAULTS, address, ports)
    text = CONFIGURATION.format(folder=folder, cuts_after=CUTS_AFTER, servers=servers, user=getpass.getuser())
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen(
        [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: process.poll() is not None or (folder / "pid").exists(), "nginx runs")
        assert process.poll() is None, process.stderr and process.stderr.read()
        yield ports
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    store = new_store(folder)
    for function in ("generator", "events"):
        pack_service("gated_stream", store, model=f"gated_{function}", function=function)
    pack_service("stream_fails", store, function="generator")
    for name in ("parrot", "headers", "echo"):
        pack_service(name, store)
    with run_server(folder, "--models", "all", properties=f"stream_heartbeat={HEARTBEAT}\n") as running:
        yield running


@pytest.fixture(scope="module", params=["defaults", "page"])
def ports(
    request: pytest.FixtureRequest, server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ports]:
    folder, page = tmp_path_factory.mktemp("nginx"), request.param == "page"
    with nginx(folder, server.info["inference"], page=page) as opened:
        yield opened


@pytest.fixture
def proxy(ports: Ports) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{ports.http}", timeout=60) as client:
        yield client


def enough(chunks: Iterator[bytes], received: bytes = b"") -> bytes:
    """Comments for a longer time than nginx waits for a silent server."""
    while received.count(COMMENT) < 1.5 * CUTS_AFTER / HEARTBEAT:
        received += next(chunks)
    return received


def test_chunks_come_when_they_are_made(proxy: httpx.Client, tmp_path: Path) -> None:
    with proxy.stream("POST", "/predictions/gated_generator", json={"count": 2, "dir": str(tmp_path)}) as reply:
        chunks = reply.iter_raw()
        assert next(chunks) == b"1\n"
        (tmp_path / "2").touch()
        assert b"".join(chunks) == b"2\n"


def test_a_stream_that_breaks_is_not_whole(proxy: httpx.Client) -> None:
    with proxy.stream("POST", "/predictions/stream_fails", json={"after": 2}) as reply:
        assert reply.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            reply.read()


def test_events_of_a_handler_that_takes_longer_than_nginx_waits(proxy: httpx.Client, tmp_path: Path) -> None:
    with proxy.stream("POST", "/predictions/gated_events", json={"count": 2, "dir": str(tmp_path)}) as reply:
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
        chunks = reply.iter_raw()
        assert set(enough(chunks)) == set(COMMENT)
        (tmp_path / "1").touch()
        assert enough(chunks).count(b"data: 1\n\n") == 1
        (tmp_path / "2").touch()
        assert b"".join(chunks).replace(COMMENT, b"") == b"data: 2\n\n"


def test_a_text_that_waits_for_its_next_token(proxy: httpx.Client) -> None:
    asked = {"model": "parrot", "prompt": "hang on", "stream": True}
    with proxy.stream("POST", "/v1/completions", json=asked) as reply:
        assert b'"hang"' in enough(reply.iter_raw())


def test_an_answer_that_is_not_a_stream_is_cut(proxy: httpx.Client) -> None:
    assert proxy.post("/v1/completions", json={"model": "parrot", "prompt": "hang on"}).status_code == 504


def test_what_the_page_adds(ports: Ports, proxy: httpx.Client) -> None:
    """Large bodies, headers with underscores and nginx's id of the request."""
    page = ports.of_page
    large = proxy.post("/predictions/echo", content=MORE_THAN_A_MEBIBYTE)
    assert large.status_code == (200 if page else 413)
    told = proxy.post("/predictions/headers", json={}, headers={"ts_request_sequence_id": "s"})
    seen = {name.lower(): value for name, value in told.json().items()}
    assert ("ts_request_sequence_id" in seen) is page
    assert (told.headers["x-request-id"] == seen.get("x-request-id")) is page


def test_grpc(ports: Ports) -> None:
    if not ports.of_page:
        pytest.skip("nginx's defaults have no gRPC")
    with grpc.insecure_channel(f"127.0.0.1:{ports.grpc}") as channel:
        path = f"/{SERVICE}/Predictions"
        predict = channel.unary_unary(path, Request.SerializeToString, Response.FromString)
        asked = Request(model_name="echo", input={"body": MORE_THAN_A_MEBIBYTE})
        assert len(predict(asked, timeout=60).prediction) == len(MORE_THAN_A_MEBIBYTE)
        stream = channel.unary_stream(f"/{SERVICE}/StreamPredictions", Request.SerializeToString, Response.FromString)
        asked = Request(model_name="stream_fails", input={"body": b'{"after": 2}'})
        replies = stream(asked, timeout=60)
        received = list[bytes]()
        with pytest.raises(grpc.RpcError, match="no more chunks"):
            received.extend(reply.prediction for reply in replies)
        assert received == [b"0\n", b"1\n"]
