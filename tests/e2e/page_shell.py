"""Types a page's commands in a folder, as its reader would, but on ports that are free."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

from tests.e2e.server import wait_until
from tests.free_ports import free_ports

PORTS = {
    "8080": "inference_address=http://127.0.0.1:{}",
    "8081": "management_address=http://127.0.0.1:{}",
    "8082": "metrics_address=http://127.0.0.1:{}",
    "7070": "grpc_inference_port={}",
    "7071": "grpc_management_port={}",
}
LIMIT = 300
"""Seconds of a command."""
REFUSED = 22
"""curl's exit code for a status from 400."""
_CHANGES_THE_SHELL = re.compile(r"(\w+=\S|cd )")


class PageShell:
    """`translate` gives a text of the page its ports; `run` types a command."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self._limit = folder, limit
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self._said: list[str] = []
        self._config = folder / "free-ports.properties"
        self.configure("")
        (folder / ".curlrc").write_text("fail-with-body\n")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {
            "PATH": path,
            "TS_CONFIG_FILE": str(self._config),
            "XDG_STATE_HOME": str(folder / "state"),
            "COLUMNS": "120",
            "CURL_HOME": str(folder),
        }
        self.env = {**os.environ, **own}

    @property
    def settings(self) -> str:
        return "".join(f"{line.format(self.ports[port])}\n" for port, line in PORTS.items())

    def configure(self, settings: str) -> None:
        """For a page whose server has a configuration."""
        self._config.write_text(self.settings + settings)

    def translate(self, text: str) -> str:
        text = text.replace("none: flags and defaults", "…")  # its ports are a configuration
        return re.sub(r"(127\.0\.0\.1|localhost):(\d{4})", lambda at: f"{at[1]}:{self.ports.get(at[2], at[2])}", text)

    def run(self, command: str, *, refused: bool = False) -> str:
        """Its output. curl fails where a server answers with an error, which the page may show (`refused`). A change of
        folder, and a variable, are there for the commands behind it."""
        done = self._bash(command)
        assert done.returncode == (REFUSED if refused else 0), f"$ {command}\n{done.stdout}\n{done.stderr}"
        if _CHANGES_THE_SHELL.match(command):
            self._said.append(command)
        if command.startswith("msx-serve --start"):
            self._wait()
        return done.stdout

    def stop(self) -> None:
        """Stop the servers that the page left running."""
        for file in [*self.folder.rglob(".msx/server.json")]:
            self._bash(f"msx-serve --stop --model-store '{file.parents[1]}'")
        left = [str(file) for file in self.folder.rglob(".msx/server.json")]
        assert not left, f"a server is left: {left}"

    def _bash(self, command: str) -> subprocess.CompletedProcess[str]:
        script = "\n".join([*self._said, command])
        return subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=self._limit
        )

    def _wait(self) -> None:
        address = f"http://127.0.0.1:{self.ports['8080']}/readyz"
        wait_until(lambda: httpx.get(address).status_code == 200, "the models are ready")
