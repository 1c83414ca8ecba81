"""The servers that a batching contest needs: one worker with the same network behind each setting of each server."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path

import click

from benchmarks.batching.curves import p99
from benchmarks.load.client import Address
from benchmarks.load.open_loop import OpenLoop, Outcome
from benchmarks.peers import mosec, torchserve
from benchmarks.servers.msx import ALL, CONFIG, HANDLERS, started
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack

BATCH_SIZE = 32
QUEUE = 20_000
"""Requests: no request is refused, so that long waits count as such."""
LIMIT = 120.0
YAML = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: {}\nmaxBatchDelay: {}\njobQueueSize: {}\nnet: {}\n"
SIZES = {"mlp": 784 * 4, "cnn": 3 * 32 * 32 * 4, "transformer": 32 * 128 * 4}
"""Bytes of a request."""
DYNAMIC = "msx dynamic"
MOSEC = """\
import sys

sys.path += {}
from mosec_small_net import serve

if __name__ == "__main__":
    serve({!r}, {}, {})
"""


@dataclass
class Setting:
    """A server with one wait. `outcomes` by the requests offered a second, one for each round in which it took part."""

    name: str
    address: Address
    path: str
    outcomes: dict[float, list[Outcome]] = field(default_factory=dict)

    def first(self, rate: float) -> float:
        """The p99 of the first round; infinity where it was not asked."""
        return p99(self.outcomes[rate][0]) if rate in self.outcomes else inf


def fixed(wait: int) -> str:
    """The name of our setting with this wait (ms)."""
    return f"msx fixed {wait} ms"


@contextlib.contextmanager
def msx_settings(net: str, waits: Sequence[int]) -> Iterator[list[Setting]]:
    """The policy `dynamic`, and `fixed` with each of these waits (ms)."""
    models = {"dynamic": f"{DYNAMIC}", **{f"fixed{wait}": fixed(wait) for wait in waits}}
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        Path(folder, "config.properties").write_text(CONFIG)
        store = Path(folder, "store")
        store.mkdir()
        for model in models:
            policy, wait = ("dynamic", 100) if model == "dynamic" else ("fixed", int(model.removeprefix("fixed")))
            config = YAML.format(BATCH_SIZE, wait, QUEUE, net) + f"batchingPolicy: {policy}\n"
            pack(replace(_archive(model, config, Path(folder)), export_path=store))
        with started(store, ALL, tokens=False, limit=LIMIT) as server:
            yield [Setting(name, server.address, f"/predictions/{model}") for model, name in models.items()]


@contextlib.contextmanager
def mosec_settings(net: str, waits: Sequence[int], client: OpenLoop) -> Iterator[list[Setting]]:
    """Raises NotInstalled. Its own Python, which finds MindSpore where this one has it."""
    program = MOSEC.format([str(HANDLERS), str(_with_mindspore())], net, BATCH_SIZE, [*waits])
    with mosec.serve(program, "--capacity", str(QUEUE), "--timeout", "30000") as (address, _):
        settings = [Setting(f"mosec {wait} ms", address, f"/{wait}") for wait in waits]
        for setting in settings:
            _wait_for(setting, net, client)
        yield settings


@contextlib.contextmanager
def torchserve_settings(net: str, waits: Sequence[int], client: OpenLoop) -> Iterator[list[Setting]]:
    """Raises NotInstalled. Its own Python, which finds MindSpore where this one has it."""
    models = {f"wait{wait}": wait for wait in waits}
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        for model, wait in models.items():
            options = _archive(model, YAML.format(BATCH_SIZE, wait, QUEUE, net), Path(folder))
            pack(replace(options, export_path=Path(folder)))
        with torchserve.serve(Path(folder), *models, packages=str(_with_mindspore())) as peer:
            settings = [Setting(f"TorchServe {w} ms", peer.http, f"/predictions/{m}") for m, w in models.items()]
            for setting in settings:
                _wait_for(setting, net, client)
            yield settings


def _wait_for(setting: Setting, net: str, client: OpenLoop) -> None:
    """Until it answers. Raises click.ClickException if it does not."""
    deadline = time.monotonic() + LIMIT
    while client.run(setting.address, setting.path, bytes(SIZES[net]), [0.0], 5.0).failed:
        if time.monotonic() > deadline:
            raise click.ClickException(f"{setting.name} has no worker after {LIMIT:g} s.")


def _archive(model: str, config: str, folder: Path) -> PackOptions:
    yaml = folder / f"{model}.yaml"
    yaml.write_text(config)
    handler, nets = str(HANDLERS / "small_net.py"), str(HANDLERS / "small_nets.py")
    return PackOptions(model_name=model, handler=handler, extra_files=nets, config_file=str(yaml))


def _with_mindspore() -> Path:
    found = find_spec("mindspore")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parents[1]
