"""The time from the start of a server to the first answer of one model, and its cost."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.load.client import Address, answers
from benchmarks.peers import torchserve
from benchmarks.servers.family import family_of
from benchmarks.servers.msx import START_LIMIT, start, stop


@dataclass(frozen=True)
class Start:
    """Seconds; processor seconds of the server's processes; bytes that they wrote; bytes of disk that are gone."""

    first_answer: float
    processor: float
    written: int
    disk: int


def start_of_msx(store: Path, model: str) -> Start:
    """Start with nothing unpacked yet. `model` answers a GET."""
    shutil.rmtree(store / ".msx", ignore_errors=True)
    free, began = _free(store), time.time()
    server = start(store, model, tokens=False)
    try:
        wait_answer(server.address, f"/predictions/{model}")
        return _cost(server.process, time.time() - began, free - _free(store))
    finally:
        stop(server)


def start_of_torchserve(folder: Path, model: str) -> Start:
    """The same, from when its process is there. Raises NotInstalled."""
    shutil.rmtree(folder / "models", ignore_errors=True)  # where it unpacks
    free = _free(folder)
    with torchserve.serve(folder, model) as peer:
        process = psutil.Process(peer.pid)
        return _cost(process, time.time() - process.create_time(), free - _free(folder))


def wait_answer(address: Address, path: str) -> None:
    """Asks again while the model is loading; MSX lets such requests wait."""
    deadline = time.monotonic() + START_LIMIT
    while not answers(address, path):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no answer of {path} within {START_LIMIT:g} s")
        time.sleep(0.005)


def _cost(process: psutil.Process, seconds: float, disk: int) -> Start:
    processor, written = 0.0, 0
    for one in family_of(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            processor += times.user + times.system
            written += one.io_counters().write_bytes
    return Start(seconds, processor, written, disk)


def _free(folder: Path) -> int:
    os.sync()
    return shutil.disk_usage(folder).free
