"""Effects of an attack: on a neighbour's answers, on the memory of the server and its workers, and what is left."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil

from tests.adversary.rig import NEIGHBOUR, NEIGHBOURS, VICTIM, Rig
from tests.e2e.server import RunningServer, client_of, wait_until

LONGEST = 20.0
"""Seconds that a neighbour's request may take on a busy machine: attacker, neighbour and server share two cores."""
LARGEST_SERVER, LARGEST_WORKER = 400 << 20, 200 << 20
"""Bytes by which the resident memory may grow at any time: the server may hold 100 MB of requests
(`max_queued_bytes`), and what lies in its sockets."""
CALM = 60.0
"""Seconds in which all that an attack has taken is given back."""
BUG = "a bug of the server"
EVERY = 0.02


class Neighbour(threading.Thread):
    """Asks all the time, and notes what was wrong, how long it took, and the memory of all processes meanwhile."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._stopped = threading.Event()
        self.faults: list[str] = []
        self.longest = 0.0
        self.answers = 0
        self.processes = {one.pid: one for one in server_processes(server)}
        self.before = self._memory()
        self.most = dict(self.before)

    def run(self) -> None:
        info = self._server.info
        with client_of(info["inference"], NEIGHBOURS, info["certificate"]) as client:
            while not self._stopped.wait(EVERY):
                for path, body in (("/livez", b""), (f"/predictions/{NEIGHBOUR}", random.randbytes(1000))):
                    self._ask(client, path, body)
                self.most = {pid: max(size, self.most[pid]) for pid, size in self._memory().items()}

    def _ask(self, client: httpx.Client, path: str, body: bytes) -> None:
        begun = time.monotonic()
        try:
            reply = client.post(path, content=body) if body else client.get(path)
        except httpx.HTTPError as error:
            self.faults.append(f"{path}: {error!r}")
            return
        self.longest = max(self.longest, time.monotonic() - begun)
        self.answers += 1
        if reply.status_code != 200 or (body and reply.content != body):
            self.faults.append(f"{path}: {reply.status_code} {reply.content[:200]!r}")

    def _memory(self) -> dict[int, int]:
        return {pid: process.memory_info().rss for pid, process in self.processes.items()}

    def wait_for_answer(self) -> None:
        """Until one more has come, or was wrong."""
        before = self.answers
        wait_until(lambda: self.answers > before or self.faults, "the neighbour has an answer", self._server.tail)

    def stop(self) -> None:
        self._stopped.set()
        self.join(LONGEST * 2)

    def wrongs(self) -> Iterator[str]:
        yield from self.faults[:5]
        if self.longest > LONGEST:
            yield f"the neighbour waited {self.longest:.1f} s"
        for pid, most in self.most.items():
            limit = LARGEST_SERVER if pid == self._server.process.pid else LARGEST_WORKER
            if most - self.before[pid] > limit:
                name = " ".join(self.processes[pid].cmdline()[-3:])
                yield f"{name} grew from {self.before[pid] >> 20} to {most >> 20} MiB"


@contextmanager
def watched(rig: Rig) -> Iterator[list[str]]:
    """Yields the list of what is wrong, to which the attack adds; raises AssertionError at the end unless it is
    empty."""
    server, faults = rig.server, list[str]()
    rig.restore()
    said = len(server.log.read_text())
    before, pids = _left(server), {one.pid for one in _workers(server)}
    neighbour = Neighbour(server)
    neighbour.start()
    try:
        neighbour.wait_for_answer()
        yield faults
        neighbour.wait_for_answer()
    finally:
        neighbour.stop()
    faults += neighbour.wrongs()
    rig.restore()
    wait_until(lambda: not _more(server, before), "all is given back", lambda: str(_more(server, before)), CALM)
    if BUG in (log := server.log.read_text()[said:]):
        faults.append(log[log.index(BUG) :][:3000])
    if {one.pid for one in _workers(server)} != pids:
        faults.append(f"a worker was lost: {server.tail()}")
    assert not faults, "\n".join(faults[:20])


def server_processes(server: RunningServer) -> list[psutil.Process]:
    """The server, and the workers of all models but the victim's."""
    return [psutil.Process(server.process.pid), *_workers(server)]


def _workers(server: RunningServer) -> list[psutil.Process]:
    names = [one["modelName"] for one in server.management.get("/models").json()["models"]]
    return [psutil.Process(pid) for name in names if name != VICTIM for pid in server.worker_pids(name)]


def _left(server: RunningServer) -> dict[str, float]:
    process = psutil.Process(server.process.pid)
    logs = {file.path for file in process.open_files() if file.path.endswith(".log")}
    return {
        "descriptors": process.num_fds() - len(logs),
        "connections": server.metric("msx_connections"),
        "bytes held": server.metric("msx_queued_bytes"),
        "requests that wait": server.metric("msx_queue_depth"),
        "requests that run": server.metric("msx_requests_in_flight"),
    }


def _more(server: RunningServer, before: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Figures that are higher than before, with both numbers."""
    now = _left(server)
    return {name: (before[name], value) for name, value in now.items() if value > before[name]}
