"""The peer: LitServe, in a virtual environment of its own, echoing a JSON string with one worker.

JSON because it takes only JSON and forms; the string is not used.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running
from benchmarks.peers.venv import install

VERSION = "0.2.19"
PACKAGES = {"litserve": VERSION, "fastapi": "0.165.0", "uvicorn": "0.54.0", "uvloop": "0.23.0", "pyzmq": "27.3.0"}
"""The other packages determine its speed."""
PATH = "/predict"
BEST: dict[str, Any] = {"fast_queue": True}
"""Its documentation's advice for high loads."""
ECHO = """\
import json
import sys

import litserve


class Echo(litserve.LitAPI):
    def setup(self, device): pass
    def decode_request(self, request): return request
    def predict(self, data): return data
    def encode_response(self, output): return output


if __name__ == "__main__":
    port, api, server = int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    made = litserve.LitServer(Echo(**api), accelerator="cpu", devices=1, **server)
    made.run(host="127.0.0.1", port=port, generate_client_file=False)
"""


@contextlib.contextmanager
def serve_echo(
    api: dict[str, Any] | None = None, server: dict[str, Any] | None = None
) -> Iterator[tuple[Address, int]]:
    """Its address and the id of its first process; `api` and `server` are arguments of LitAPI and LitServer.

    Raises NotInstalled.
    """
    python = install("litserve", PACKAGES)
    address = Address("127.0.0.1", free_ports(1)[0])
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        script = Path(folder, "served.py")
        script.write_text(ECHO)
        options = [json.dumps(some or {}) for some in (api, server)]
        command = [str(python), str(script), str(address.port), *options]
        with running("LitServe", command, Path(folder), address, "/health") as pid:
            yield address, pid
