"""An archive of many random bytes, from the start of a server to its first answer."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cli.benchmark import progress
from benchmarks.handlers.weights import WEIGHTS
from benchmarks.peers import torchserve
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Values
from benchmarks.reports.table import Table
from benchmarks.servers.msx import HANDLERS, store_of
from benchmarks.start.starts import Start, start_of_msx, start_of_torchserve
from msx_archiver.options import PackOptions

MODEL = "weights"
OURS, PEER = "msx", f"TorchServe {torchserve.VERSION}"
MB = 10**6


@dataclass
class Large:
    """Figures by server, and s for reading the archive once."""

    starts: dict[str, list[Start]] = field(default_factory=dict)
    reading: list[float] = field(default_factory=list)

    def first_answers(self) -> dict[str, Values]:
        return {name: [start.first_answer for start in starts] for name, starts in self.starts.items()}


def large_archive(size: int, runs: int, *, peer: bool) -> Large:
    """`size` in bytes of the weights, which are stored; from its making on the archive is in the disk cache."""
    found = Large()
    with _archive(size) as store:
        archive, servers = store / f"{MODEL}.mar", _servers(store, peer=peer)
        for number in range(runs):
            found.reading.append(_read(archive))
            for name, start in servers.items():
                found.starts.setdefault(name, []).append(start())
            progress(f"start: archive, run {number + 1} of {runs}")
    return found


def large_table(size: int, found: Large) -> Table:
    columns = ("server", "first answer, s", "lowest – highest", "processor, s", "written, MB", "disk taken, MB")
    rows = [_row(name, starts) for name, starts in found.starts.items()]
    rows.append(("reading it once", figure(median(found.reading)), spread(found.reading), "", "", ""))
    if PEER in found.starts:
        seconds = found.first_answers()
        middle, low, high = paired_ratio(seconds[PEER], seconds[OURS])
        rows.append(("TorchServe / msx", f"{middle:.2f}", f"{low:.2f} – {high:.2f}", "", "", ""))
    return Table(f"An archive of {size / MB:,.0f} MB, from start to first answer", columns, rows)


def _row(name: str, starts: Sequence[Start]) -> tuple[str, ...]:
    seconds = [start.first_answer for start in starts]
    others = (
        [start.processor for start in starts],
        [start.written / MB for start in starts],
        [start.disk / MB for start in starts],
    )
    return (name, figure(median(seconds)), spread(seconds), *(figure(median(values)) for values in others))


def _servers(store: Path, *, peer: bool) -> dict[str, Callable[[], Start]]:
    """TorchServe gets a folder of its own with the same archive."""
    servers = {OURS: lambda: start_of_msx(store, MODEL)}
    if peer:
        folder = store.parent / "torchserve"
        folder.mkdir()
        os.link(store / f"{MODEL}.mar", folder / f"{MODEL}.mar")
        servers[PEER] = lambda: start_of_torchserve(folder, MODEL)
    return servers


@contextmanager
def _archive(size: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        weights = Path(folder, WEIGHTS)
        _write(weights, size)
        handler = str(HANDLERS / f"{MODEL}.py")
        options = PackOptions(model_name=MODEL, handler=handler, serialized_file=str(weights))
        with store_of(options, "minWorkers: 1\nmaxWorkers: 1\n") as store:
            weights.unlink()
            yield store


def _write(file: Path, size: int) -> None:
    with file.open("wb") as weights:
        for start in range(0, size, MB):
            weights.write(os.urandom(min(MB, size - start)))


def _read(file: Path) -> float:
    began, buffer = time.perf_counter(), bytearray(1 << 18)
    with file.open("rb", buffering=0) as archive:
        while archive.readinto(buffer):
            pass
    return time.perf_counter() - began
