"""TLS and Unix-socket listeners.

contract#http-conventions, contract#security
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Certificate, write_keystore, write_pem
from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import assert_status
from tests.e2e.server import WATCHDOG, RunningServer, server_environment
from tests.free_ports import free_port

pytestmark = pytest.mark.e2e

HTTPS = "inference_address=https://127.0.0.1:0\nmanagement_address=https://127.0.0.1:0\n"


def with_tls(properties: str, *, tokens: bool = False) -> Setup:
    return Setup(services=("echo",), load=("echo.mar",), properties=HTTPS + properties, tokens=tokens)


def test_pem(tmp_path: Path) -> None:
    key, certificate = write_pem(Certificate.make(), tmp_path)
    setup = with_tls(f"private_key_file={key}\ncertificate_file={certificate}\n", tokens=True)
    with serving(setup, tmp_path) as server:
        assert server.predict("echo", b"x").content == b"x"
        assert_status(server.management.get("/ping"), 200, "Healthy")
        assert server.metrics.base_url.scheme == "http"  # its own address says so
        assert server.metrics.get("/metrics").status_code == 200
        refuses_plain_http(server)
        refuses_old_tls(server)
        speaks_tls_1_3(server)
        assert "READY" in status_of(server)


def refuses_plain_http(server: RunningServer) -> None:
    """TorchServe answers 403; here the connection ends."""
    with connected(server) as sock:
        sock.sendall(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n")
        assert not said_before_the_end(sock).startswith(b"HTTP/")


def said_before_the_end(sock: socket.socket) -> bytes:
    """At most an alert of TLS."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(1000):
            said += piece
    return said


def connected(server: RunningServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.inference.base_url.port or 443), timeout=WATCHDOG)


def refuses_old_tls(server: RunningServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.options &= ~ssl.OP_NO_TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with connected(server) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock)


def speaks_tls_1_3(server: RunningServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with connected(server) as sock, context.wrap_socket(sock) as tls:
        assert tls.version() == "TLSv1.3"


def status_of(server: RunningServer) -> str:
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--status", "--model-store", str(server.store)]
    said = subprocess.run(command, capture_output=True, text=True, env=server_environment(server.folder), check=True)
    return said.stdout


def test_a_keystore(tmp_path: Path) -> None:
    store = write_keystore(Certificate.make(), tmp_path, password="geheim")
    setup = with_tls(f"keystore={store}\nkeystore_pass=geheim\nkeystore_type=PKCS12\n")
    with serving(setup, tmp_path) as server:
        assert server.predict("echo", b"x").content == b"x"
        assert "geheim" not in server.log.read_text()


def test_a_wrong_password_ends_the_start(tmp_path: Path) -> None:
    store = write_keystore(Certificate.make(), tmp_path, password="geheim")
    (tmp_path / "config.properties").write_text(f"{HTTPS}keystore={store}\n")
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--model-store", str(tmp_path)]
    command += ["--ts-config", str(tmp_path / "config.properties")]
    said = subprocess.run(
        command, capture_output=True, text=True, env=server_environment(tmp_path), cwd=tmp_path, check=False
    )
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert said.stderr.startswith(f"keystore: {store} cannot be opened: keystore_pass is wrong")


def test_unix_sockets(tmp_path: Path) -> None:
    paths = {name: f"/tmp/msx-{os.getpid()}-{name}.sock" for name in ("inference", "management", "metrics")}
    properties = "".join(f"{name}_address=unix:{path}\n" for name, path in paths.items())
    with serving(Setup(services=("echo",), load=("echo.mar",), properties=properties), tmp_path) as server:
        assert server.predict("echo", b"x").content == b"x"
        assert server.describe("echo")["modelName"] == "echo"
        assert server.metrics.get("/metrics").status_code == 200
        assert "READY" in status_of(server)


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One listener for inference and management, with tokens."""
    path = f"/tmp/msx-{os.getpid()}-merged.sock"
    properties = f"inference_address=unix:{path}\nmanagement_address=unix:{path}\n"
    setup = Setup(services=("echo",), load=("echo.mar",), properties=properties, tokens=True)
    with serving(setup, tmp_path_factory.mktemp("merged")) as server:
        yield server


def test_equal_addresses_are_one_listener(merged: RunningServer) -> None:
    assert merged.info["inference"] == merged.info["management"] != merged.info["metrics"]
    assert merged.predict("echo", b"x").content == b"x"
    assert merged.describe("echo")["modelName"] == "echo"
    assert merged.register(Path("echo.mar"), model_name="other", initial_workers=0).status_code == 200
    assert merged.management.delete("/models/other").status_code == 200
    assert merged.inference.get("/metrics").text.startswith("# HELP")
    assert merged.metrics.get("/metrics").text.startswith("# HELP")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/predictions/echo", {"inference"}),
        ("POST", "/models/echo/invoke", {"inference"}),
        ("POST", "/v1/models/echo:predict", {"inference"}),
        ("GET", "/models", {"management"}),
        ("GET", "/models/echo", {"management"}),
        ("PUT", "/models/echo/1.0/set-default", {"management"}),
        ("GET", "/ping", {"inference", "management"}),
        ("GET", "/metrics", {"inference", "management"}),
        ("GET", "/absent", {"inference", "management"}),
        ("OPTIONS", "/", {"inference", "management", "API", "none"}),
    ],
)
def test_one_listener_asks_for_one_key(merged: RunningServer, method: str, path: str, allowed: set[str]) -> None:
    """contract#tokens: TorchServe asks for both, one after the other, so that no management call can pass."""
    assert merged.keys is not None
    keys = {kind: entry["key"] for kind, entry in merged.keys.items()} | {"none": "wrong"}
    passed = {
        kind
        for kind, key in keys.items()
        if merged.inference.request(method, path, headers={"authorization": f"Bearer {key}"}).status_code != 400
    }
    assert passed == allowed


def test_one_listener_describes_everything(merged: RunningServer) -> None:
    paths = merged.inference.options("/").json()["paths"]
    assert {"/predictions/{model_name}", "/models/{model_name}", "/metrics"} <= paths.keys()


def test_one_listener_on_a_port(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    properties = f"inference_address={address}\nmanagement_address={address}\n"
    with serving(Setup(services=("echo",), properties=properties), tmp_path) as server:
        assert server.register(Path("echo.mar")).status_code == 200
        assert server.predict("echo", b"x").content == b"x"
