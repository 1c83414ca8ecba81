"""Models on the built-in steps: MindIR, the image classifier, and an encoder of torch's, on the CPU or a GPU."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import httpx
import numpy as np

from benchmarks.contests.contest import Contestant
from benchmarks.load.closed_loop import ClosedLoop
from benchmarks.reports.figures import median, spread
from benchmarks.reports.table import Report, Target
from benchmarks.servers.msx import HANDLERS, Server, started, store_of
from benchmarks.utilisation.clock import FULL, OURS, SEQUENTIAL
from benchmarks.utilisation.exported import NETWORKS, PICTURE
from benchmarks.utilisation.figures import Record, table
from benchmarks.utilisation.served import Plan, Served, check_overlap, play
from msx_archiver.options import PackOptions

MODEL = "network"
TOKENS = 128
"""Tokens of a text."""
LEAST, MOST_MORE = 0.95, 0.5
"""Least ratio to the loop on a GPU, and the most milliseconds of a lone request beyond the call."""
CONFIG = """\
minWorkers: 1
maxWorkers: 1
batchSize: {}
jobQueueSize: 1000
overlap: {}
{}
"""
ON_CPU = "deviceType: cpu"
CUDA = "import torch; print(torch.cuda.is_available())"
BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Model:
    title: str
    batch: int
    handler: str
    """Handler in benchmarks/handlers, `NAME.py` or `NAME.py:CLASS`."""
    body: bytes
    extra: tuple[str, ...] = ("measured_calls",)
    """Modules beside it."""
    network: str = ""
    """The MindIR file that it serves, a key of NETWORKS."""
    config: str = ON_CPU
    """Further lines of its yaml."""
    targets: bool = False


def mindspore_models() -> list[Model]:
    small, large = (_npy(np.ones((1, *NETWORKS[name].shape), np.float32)) for name in ("small", "large"))
    mindir, images = "measured_mindir.py:MeasuredMindIR", "measured_mindir.py:MeasuredImages"
    return [
        Model("A small MindIR, batches of 16, CPU", 16, mindir, small, network="small"),
        Model("A larger MindIR, batches of 16, CPU", 16, mindir, large, network="large"),
        Model("Image classifier, PNG, batches of 16, CPU", 16, images, _png(), network="pictures"),
    ]


def encoder_on_cpu() -> Model:
    return _encoder("An encoder of torch's, 2 layers of 128, batches of 16, CPU", 16, 2, 128, ON_CPU)


def encoder_on_gpu() -> Model:
    return _encoder("An encoder of BERT-base's shape, bf16, 128 tokens, batches of 64, GPU", 64, 12, 768, "", True)


def _encoder(title: str, batch: int, layers: int, width: int, device: str, targets: bool = False) -> Model:
    config = f"{device}\nencoder: {{layers: {layers}, width: {width}}}"
    extra = ("measured_calls", "encoder_net")
    body = np.arange(TOKENS, dtype=np.int32).tobytes()
    return Model(title, batch, "measured_encoder.py", body, extra, config=config, targets=targets)


def measure(report: Report, models: list[Model], plan: Plan) -> None:
    """Add a table for each model, and the targets of those that have some."""
    for model in models:
        with ExitStack() as stack:
            field = [stack.enter_context(_served(model, name, overlap=name == OURS)) for name in (OURS, SEQUENTIAL)]
            play(model.title, field, ClosedLoop(model.body, {"Content-Type": BINARY}), plan)
        report.tables.append(table(model.title, [one.record for one in field]))
        report.targets += targets(model, field[0].record)


def targets(model: Model, record: Record) -> list[Target]:
    """Targets of ours: the ratio to the loop with full batches, and what a lone request takes beyond the call."""
    if not model.targets:
        return []
    ratios, more = record.ratios, record.more * 1000
    return [
        Target(
            f"{model.title}: of the loop",
            f"{median(ratios):.3f} ({spread(ratios)})",
            f"≥ {LEAST:g}",
            median(ratios) >= LEAST,
        ),
        Target(f"{model.title}: full batches", f"{record.full:.1%}", f"≥ {FULL:.0%}", record.full >= FULL),
        Target(
            f"{model.title}: ms of one connection beyond the call", f"{more:.3f}", f"≤ {MOST_MORE:g}", more <= MOST_MORE
        ),
    ]


def missing(package: str) -> str:
    """Return why models that need this package are not measured here, a sentence, or nothing."""
    if importlib.util.find_spec(package) is None:
        return f"Models that need {package} were not measured: it is not installed."
    return ""


def missing_gpu() -> str:
    """As `missing`, where torch is installed: whether it sees a GPU, asked in a process of its own."""
    found = subprocess.run([sys.executable, "-c", CUDA], capture_output=True, text=True, check=False).stdout
    return "" if found == "True\n" else "The encoder of BERT-base's shape was not measured: torch sees no GPU here."


@contextmanager
def _served(model: Model, name: str, *, overlap: bool) -> Iterator[Served]:
    config = CONFIG.format(model.batch, str(overlap).lower(), model.config)
    with (
        TemporaryDirectory(prefix="msx-benchmark-") as folder,
        store_of(_options(model, Path(folder)), config) as store,
        started(store, MODEL, tokens=False) as server,
    ):
        check_overlap(server, MODEL, wanted=overlap)
        contestant = Contestant(name, server.address, f"/predictions/{MODEL}", server.process.pid)
        yield Served(Record(name, model.batch), contestant, partial(_figures, server))


def _options(model: Model, folder: Path) -> PackOptions:
    extra = ",".join(str(HANDLERS / f"{name}.py") for name in model.extra)
    serialized = _export(model.network, folder / "network.mindir") if model.network else None
    handler = str(HANDLERS / model.handler)
    return PackOptions(model_name=MODEL, handler=handler, extra_files=extra, serialized_file=serialized)


def _export(name: str, file: Path) -> str:
    """Return the file, made by a process of its own: MindSpore is never in this one."""
    command = [sys.executable, "-m", "benchmarks.utilisation.exported", name, str(file)]
    done = subprocess.run(command, cwd=HANDLERS.parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"MindSpore did not export the network {name}: {done.stderr[-500:]}")
    return str(file)


def _figures(server: Server) -> Mapping[str, Any]:
    reply = httpx.get(f"{server.management}/models/{MODEL}?customized=true", timeout=60)
    reply.raise_for_status()
    figures: dict[str, Any] = reply.json()[0]["customizedMetadata"]
    return figures


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _png() -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (PICTURE, PICTURE, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
