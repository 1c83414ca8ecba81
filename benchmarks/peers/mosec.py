"""The peer: mosec, in a virtual environment of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running
from benchmarks.peers.venv import install

VERSION = "0.9.8"
PACKAGES = {"mosec": VERSION}
PATH = "/inference"
ECHO = '''\
from mosec import Server, Worker


class Echo(Worker):
    """Bytes as they are: JSON, mosec's default, would be work that the other servers do not do."""

    def deserialize(self, data): return data
    def serialize(self, data): return data
    def forward(self, data): return data


if __name__ == "__main__":
    server = Server()
    server.append_worker(Echo{})
    server.run()
'''


def serve_echo(*flags: str, batch: int = 1, wait: int = 10) -> contextlib.AbstractContextManager[tuple[Address, int]]:
    """Serve with its defaults, unless said otherwise: `wait` ms are for a batch to fill."""
    batching = f", max_batch_size={batch}, max_wait_time={wait}" if batch > 1 else ""
    return serve(ECHO.replace("{}", batching), *flags)


@contextlib.contextmanager
def serve(
    program: str, *flags: str, packages: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[Address, int]]:
    """Its address and the id of its first process. `program` is the text of the script, which needs these packages,
    too. Raises NotInstalled."""
    python = install("mosec", {**PACKAGES, **packages})
    address = Address("127.0.0.1", free_ports(1)[0])
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        script = Path(folder, "served.py")
        script.write_text(program)
        command = [str(python), str(script), "--address", address.host, "--port", str(address.port)]
        command += ["--path", folder + "/ipc", *flags]
        with running("mosec", command, Path(folder), address, "/") as pid:
            yield address, pid
