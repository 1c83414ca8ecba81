"""SIGKILL of each rank of a group in turn, mid-stream: `scripts/soak`."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx
import psutil

from tests.e2e.groups import LAYOUTS, header, ranks
from tests.e2e.llama import EXAMPLE, pack_llama
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server
from tests.processes import alive

GROUPS = ("tp2", "pp2", "pptp4")
TOLD_WITHIN = 1.0
"""Seconds from the kill to the client's error."""
READY_WITHIN = 180.0
HEADINGS = ("group", "rounds", "error after, median", "longest", "served again after, median", "longest", "faults")


@dataclass
class Soak:
    """All rounds of one layout. Times in seconds from the kill."""

    layout: str
    told: list[float] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        times = [*_figures(self.told), *_figures(self.served)]
        return (self.layout, str(len(self.told)), *times, str(len(self.faults)))


class Model:
    """Model, and the requests to it: `stream` must go on for longer than a kill takes."""

    def __init__(self, *, llama: bool) -> None:
        self._llama = llama

    def pack(self, folder: Path, layout: str) -> Path:
        if self._llama:
            return _pack_llama(new_store(folder), layout)
        records = folder / f"records-{layout}"
        records.mkdir()
        config = f"{LAYOUTS[layout]}folder: {records}\n"
        return pack_service("parallel_record", new_store(folder), model=layout, config=config)

    def request(self, *, long: bool) -> dict[str, Any]:
        if self._llama:
            return {"json": {"prompt": "Exceptions are", "max_new_tokens": 200 if long else 2, "ignore_eos": True}}
        return {"content": b"x", "headers": header(steps=100_000 if long else 2, pause=0.01)}


@click.command()
@click.option("--rounds", default=20, type=click.IntRange(1), help="Kills for each layout, of each rank in turn.")
@click.option("--layout", "layouts", multiple=True, type=click.Choice(GROUPS), default=GROUPS, help="May be repeated.")
@click.option("--llama", is_flag=True, help="examples/llama on MindSpore, instead of ranks that only stream.")
@click.option("--minutes", default=60.0, type=click.FloatRange(0), help="No new round after so long.")
def main(rounds: int, layouts: tuple[str, ...], llama: bool, minutes: float) -> None:
    """Kill each rank of tp2, pp2 and pptp4 in turn while it streams; exit with 1 when anything is not as it must be."""
    end = time.monotonic() + minutes * 60
    soaks = []
    for layout in layouts:
        with _served(Model(llama=llama), layout) as (server, model):
            soaks.append(_soak(server, model, layout, rounds, end))
    _print([HEADINGS, *(soak.row() for soak in soaks)])
    for fault in (fault for soak in soaks for fault in soak.faults):
        click.echo(fault)
    if short := [soak.layout for soak in soaks if len(soak.told) < rounds]:
        click.echo(f"stopped after {minutes:g} minutes, before all rounds of {', '.join(short)} were done")
    sys.exit(any(soak.faults for soak in soaks))


@contextmanager
def _served(model: Model, layout: str) -> Iterator[tuple[RunningServer, Model]]:
    """Four simulated devices. At its end `run_server` finds what is left of the server."""
    with tempfile.TemporaryDirectory(prefix="msx-soak-") as name:
        folder = Path(name)
        archive = model.pack(folder, layout)
        with run_server(folder, properties="simulate_devices=4\n") as server:
            parameters: dict[str, str | int] = {"url": archive.name, "initial_workers": 1}
            server.management.post("/models", params=parameters, timeout=READY_WITHIN).raise_for_status()
            yield server, model


def _soak(server: RunningServer, model: Model, layout: str, rounds: int, end: float) -> Soak:
    soak = Soak(layout)
    for number in range(rounds):
        if time.monotonic() > end:
            break
        processes = [psutil.Process(one["pid"]) for one in ranks(server, layout)]
        rank = number % len(processes)
        _round(server, model, soak, processes, rank)
        click.echo(f"{layout} round {number + 1}: rank {rank}, told after {soak.told[-1]:.3f} s", err=True)
    return soak


def _round(server: RunningServer, model: Model, soak: Soak, processes: list[psutil.Process], rank: int) -> None:
    layout, folders, holder = soak.layout, _work_dirs(server), _devices(server, soak.layout)

    def fault(sentence: str) -> None:
        soak.faults.append(f"{layout} round {len(soak.told)}, rank {rank}: {sentence}")

    killed = _kill_mid_stream(server, model, layout, processes[rank].pid, fault)
    soak.told.append(time.monotonic() - killed)
    if soak.told[-1] > TOLD_WITHIN:
        fault(f"the client was told after {soak.told[-1]:.2f} s")
    if not _until(lambda: _answers(server, model, layout), READY_WITHIN):
        return fault("it does not serve again")
    soak.served.append(time.monotonic() - killed)
    if f"Rank {rank} (pid {processes[rank].pid}) was ended by signal 9" not in _last_error(server, layout):
        fault(f"it is said to have ended by: {_last_error(server, layout)}")
    if not _until(lambda: not alive(processes), 5):
        fault("a process of the dead generation is left")
    if not _until(lambda: not folders & _work_dirs(server), 5):
        fault("a folder of the dead generation is left")
    if _devices(server, layout) != holder:
        fault(f"it has the devices {_devices(server, layout)}, and had {holder}")
    return None


def _kill_mid_stream(server: RunningServer, model: Model, layout: str, pid: int, fault: Callable[[str], None]) -> float:
    """Returns when the client knows; the instant of the kill."""
    with client_of(server.info["inference"], None) as client:
        path = f"/predictions/{layout}"
        with client.stream("POST", path, **model.request(long=True)) as reply:
            pieces = reply.iter_raw()
            next(pieces)
            killed = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            try:
                for _ in pieces:
                    pass
                fault("the stream ended as if it were whole")
            except httpx.RemoteProtocolError:
                pass
    return killed


def _answers(server: RunningServer, model: Model, layout: str) -> bool:
    with client_of(server.info["inference"], None) as client:
        return client.post(f"/predictions/{layout}", **model.request(long=False), timeout=READY_WITHIN).is_success


def _last_error(server: RunningServer, layout: str) -> str:
    return str(server.describe(layout)["workers"][0].get("lastError", ""))


def _devices(server: RunningServer, layout: str) -> str:
    return str(server.describe(layout)["workers"][0].get("devices"))


def _work_dirs(server: RunningServer) -> set[str]:
    return {entry.name for entry in (server.store / ".msx" / "run").iterdir()}


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


def _pack_llama(store: Path, layout: str) -> Path:
    config = (EXAMPLE / f"model-config-{layout}.yaml").read_text() + "deviceType: cpu\n"
    return pack_llama(store, layout, config)


def _figures(seconds: list[float]) -> tuple[str, str]:
    if not seconds:
        return "-", "-"
    return f"{statistics.median(seconds):.3f} s", f"{max(seconds):.3f} s"


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
