"""The peer: mosec, in a virtual environment of its own, echoing with its defaults."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks._client import Address, answers
from benchmarks._venv import install

VERSION = "0.9.8"
START_LIMIT = 30.0
ECHO = '''\
from mosec import Server, Worker


class Echo(Worker):
    """The bytes as they are: JSON, its default, would be work that the other side does not do."""

    def deserialize(self, data): return data
    def serialize(self, data): return data
    def forward(self, data): return data


if __name__ == "__main__":
    server = Server()
    server.append_worker(Echo)
    server.run()
'''


@contextlib.contextmanager
def serve_echo() -> Iterator[tuple[Address, int]]:
    """Its address and the id of its first process. Raises NotInstalled."""
    python = install("mosec", {"mosec": VERSION})
    address = Address("127.0.0.1", _free_port())
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        script, log = Path(folder, "echo.py"), Path(folder, "log")
        script.write_text(ECHO)
        command = [str(python), str(script), "--address", address.host, "--port", str(address.port)]
        with log.open("w") as output:
            process = subprocess.Popen([*command, "--path", folder + "/ipc"], stdout=output, stderr=output, cwd=folder)
        try:
            _wait(process, address, log)
            yield address, process.pid
        finally:
            _stop(process)


def _wait(process: subprocess.Popen[bytes], address: Address, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT
    while not answers(address, "/"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise click.ClickException(f"mosec did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
