"""A folder laid out like a clone of pytorch/serve, and a shell in it that has commands of TorchServe's names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import httpx
import psutil

from tests.e2e.server import FREE_PORTS, client_of, server_environment, wait_until
from tests.e2e.test_command_line import Said
from tests.processes import is_alive
from tests.torch_models import EXAMPLES

Files: TypeAlias = Mapping[str, str | bytes]
CLONE = os.environ.get("MSX_TORCHSERVE_EXAMPLES", "")


class Readme:
    """`files`: the content, or the name of a file in tests/services/ts/examples, by the path in the clone."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.folder = folder
        self._bin = folder / "bin"
        self._env = {**server_environment(folder), "PATH": f"{self._bin}:{os.environ['PATH']}"}
        for path, stand_in in files.items():
            self._lay(path, stand_in)
        self.types(f"{Path(sys.executable).parent / 'msx-serve'} link-names {self._bin}")
        self.write("config.properties", FREE_PORTS)

    def _lay(self, path: str, stand_in: str | bytes) -> None:
        true = Path(CLONE, path)
        if CLONE and true.is_file():
            self.write(path, true.read_bytes())
        elif isinstance(stand_in, str) and stand_in.endswith(".py"):
            self.write(path, (EXAMPLES / stand_in).read_bytes())
        else:
            self.write(path, stand_in)

    def write(self, path: str, content: str | bytes) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def types(self, *lines: str, folder: str = "") -> Said:
        """Give the lines to a shell, in a folder of the clone."""
        done = subprocess.run(
            ["sh", "-ec", "\n".join(lines)],
            cwd=self.folder / folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serves(self, start: str, *, folder: str = "", properties: str = "config.properties") -> Iterator[Served]:
        """Type a line with `torchserve --start` and, at the end, the one that stops it. The server has free ports."""
        if properties != "config.properties":
            self.write(properties, FREE_PORTS.encode() + b"\n" + self._without_addresses(properties))
        config = "" if "--ts-config" in start else f" --ts-config {self.folder / properties}"
        said = self.types(start + config, folder=folder)
        process = psutil.Process(said.pid)
        served = Served(said.place("inference"), said.place("management"), said.place("metrics"))
        try:
            wait_until(served.is_healthy, "it is healthy", lambda: self._log(folder))
            yield served
        finally:
            served.close()
            self.types("torchserve --stop", folder=folder)
            wait_until(lambda: not is_alive(process), "the server has ended", lambda: self._log(folder))

    def _without_addresses(self, properties: str) -> bytes:
        lines = self.read(properties).splitlines()
        return b"\n".join(line for line in lines if b"_address=" not in line and b"_port=" not in line)

    def _log(self, folder: str) -> str:
        logs = [*(self.folder / folder).glob("logs/*.log"), *self.folder.glob("logs/*.log")]
        return "\n".join(log.read_text()[-6000:] for log in logs)


class Served:
    """The server of an example, by its addresses."""

    def __init__(self, inference: str, management: str, metrics: str) -> None:
        self.inference, self.management, self.metrics = map(client_of, (inference, management, metrics))

    def is_healthy(self) -> bool:
        return self.inference.get("/ping").status_code == 200

    def sends(self, path: str, content: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The request of `curl -T`."""
        reply = self.inference.put(path, content=content, headers=dict(headers or {}))
        assert reply.status_code == 200, reply.text
        return reply

    def close(self) -> None:
        for client in (self.inference, self.management, self.metrics):
            client.close()
