"""The clients of the examples where the server wants a key."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.pages import ROOT

TOLD = "No key was sent: run this where the server was started (key_file.json), or give --token."


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.end_headers()
        self.wfile.write(b"refused\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("llama/client.py", ["x"]), ("llama/chat.py", []), ("matmul/client.py", [])],
)
def test_who_has_no_key_is_told_where_it_is(tmp_path: Path, url: str, program: str, arguments: list[str]) -> None:
    (tmp_path / "x.png").touch()
    assert TOLD in _said(tmp_path, url, program, arguments)
    assert TOLD not in _said(tmp_path, url, program, [*arguments, "--token", "a-wrong-one"])


def _said(folder: Path, url: str, program: str, arguments: list[str]) -> str:
    command = [sys.executable, str(ROOT / "examples" / program), "--url", url, *arguments]
    done = subprocess.run(command, cwd=folder, input="hello\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "refused" in said
    return " ".join(said.split())
