"""The peer: TorchServe, in a virtual environment of its own, echoing with its defaults and one worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
import psutil

from benchmarks._client import Address, answers
from benchmarks._server import SERVICES
from benchmarks._venv import NotInstalled, install
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
disable_token_authorization=true
disable_system_metrics=true
"""


class Peer(NamedTuple):
    http: Address
    grpc: Address
    pid: int


@contextlib.contextmanager
def serve_echo() -> Iterator[Peer]:
    """With the one model MODEL. Raises NotInstalled."""
    if shutil.which("java") is None:
        raise NotInstalled("TorchServe needs Java, which is not on PATH.")
    python = install("torchserve", PACKAGES)
    with TemporaryDirectory(prefix="msx-benchmark-") as name:
        folder, ports = Path(name), _free_ports(6)
        (folder / "config.properties").write_text(CONFIG.format(*ports))
        pack(PackOptions(model_name=MODEL, handler=str(SERVICES / f"{MODEL}.py"), export_path=folder))
        command = [str(python.with_name("torchserve")), "--foreground", "--ncs", "--model-store", name]
        command += ["--ts-config", "config.properties", "--models", f"{MODEL}.mar"]
        with (folder / "log").open("w") as output:
            process = subprocess.Popen(
                command, cwd=folder, stdout=output, stderr=output, env=_environment(python, folder)
            )
        try:
            peer = Peer(Address("127.0.0.1", ports[0]), Address("127.0.0.1", ports[3]), process.pid)
            _wait(process, peer.http, folder / "log")
            yield peer
        finally:
            _stop(process)


def _environment(python: Path, temp: Path) -> dict[str, str]:
    """For its workers it takes the `python` on PATH; that it runs already it reads from the temporary folder."""
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": "", "TMPDIR": str(temp)}


def _wait(process: subprocess.Popen[bytes], address: Address, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT
    while not answers(address, f"/predictions/{MODEL}"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise click.ClickException(f"TorchServe did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Its Java process and its worker do not end with it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.terminate()
        for one in psutil.wait_procs(family, timeout=10)[1]:
            one.kill()
    process.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
