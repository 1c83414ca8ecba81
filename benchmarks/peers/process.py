"""Another server as a process of its own, for as long as it is measured."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import psutil

from benchmarks.load.client import Address, answers

LIMIT = 10.0
"""Seconds to end in order."""


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str],
    folder: Path,
    address: Address,
    probe: str,
    *,
    environment: dict[str, str] | None = None,
    limit: float = 60.0,
) -> Iterator[int]:
    """The id of its first process. It runs in `folder` and is there when a GET of `probe` is answered with 200.

    Raises click.ClickException, with the end of what it wrote, when it is not there after `limit` seconds.
    """
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen([*command], cwd=folder, stdout=output, stderr=output, env=environment)
    try:
        _wait(name, process, address, probe, log, limit)
        yield process.pid
    finally:
        _stop(process)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _wait(name: str, process: subprocess.Popen[bytes], address: Address, probe: str, log: Path, limit: float) -> None:
    deadline = time.monotonic() + limit
    while not answers(address, probe):
        if process.poll() is not None or time.monotonic() > deadline:
            raise click.ClickException(f"{name} did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Not every server ends its own processes: TorchServe's Java and LitServe's workers outlive their parent."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                end(one)
        family = psutil.wait_procs(family, timeout=LIMIT)[1]
