"""The peer: TorchServe, in a virtual environment of its own, one worker, and room in its queue for all connections."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running
from benchmarks.peers.venv import NotInstalled, install
from benchmarks.servers.msx import HANDLERS
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack

VERSION = "0.12.0"
PACKAGES = {"torchserve": VERSION, "torch": "2.13.0", "pyyaml": "6.0.2", "numpy": "2.2.6"}
"""torch and the others are what its worker imports for any handler."""

START_LIMIT = 120.0
MODEL = "torchserve_echo"
CONFIG = """\
inference_address=http://127.0.0.1:{}
management_address=http://127.0.0.1:{}
metrics_address=http://127.0.0.1:{}
grpc_inference_port={}
grpc_management_port={}
initial_worker_port={}
default_workers_per_model=1
job_queue_size=1000
disable_token_authorization=true
disable_system_metrics=true
"""


class Peer(NamedTuple):
    http: Address
    grpc: Address
    pid: int


@contextlib.contextmanager
def serve_echo(batch: int = 1, delay: int = 100) -> Iterator[Peer]:
    """Serve the one model MODEL; `delay` ms are for a batch to fill. Raises NotInstalled."""
    with TemporaryDirectory(prefix="msx-benchmark-") as name:
        folder = Path(name)
        (folder / "model.yaml").write_text(f"batchSize: {batch}\nmaxBatchDelay: {delay}\n")
        options = PackOptions(model_name=MODEL, handler=str(HANDLERS / f"{MODEL}.py"), export_path=folder)
        pack(replace(options, config_file=str(folder / "model.yaml")))
        with serve(folder, MODEL) as peer:
            yield peer


@contextlib.contextmanager
def serve(folder: Path, *models: str, packages: str = "") -> Iterator[Peer]:
    """Serve these archives of this folder, where it writes its logs, too. Raises NotInstalled.

    `packages`: a folder of others that its workers find.
    """
    if shutil.which("java") is None:
        raise NotInstalled("TorchServe needs Java, which is not on PATH.")
    python = install("torchserve", PACKAGES)
    ports = free_ports(6)
    (folder / "config.properties").write_text(CONFIG.format(*ports))
    command = [str(python.with_name("torchserve")), "--foreground", "--ncs", "--model-store", str(folder)]
    command += ["--ts-config", "config.properties", "--models", *(f"{model}.mar" for model in models)]
    http, environment = Address("127.0.0.1", ports[0]), _environment(python, folder, packages)
    with running(
        "TorchServe", command, folder, http, f"/predictions/{models[-1]}", environment=environment, limit=START_LIMIT
    ) as pid:
        yield Peer(http, Address("127.0.0.1", ports[3]), pid)


def java() -> str:
    """The version as java prints it; empty without Java."""
    if shutil.which("java") is None:
        return ""
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.partition("\n")[0]


def _environment(python: Path, temp: Path, packages: str) -> dict[str, str]:
    """Its workers use the `python` on PATH; the temporary folder tells it whether it runs already."""
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": packages, "TMPDIR": str(temp)}
