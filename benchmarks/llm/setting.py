"""All processes that have the model: they run for the whole time, and one of them works at a time."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from benchmarks.cli.benchmark import progress
from benchmarks.llm.arrivals import Clients
from benchmarks.llm.peer import Peer, peer
from benchmarks.llm.streams import text_of
from benchmarks.peers.venv import install
from benchmarks.servers.msx import Server, started, store_of
from msx_archiver.options import PackOptions

VERSIONS = {"torch": "2.13.0", "transformers": "5.23.0", "ctranslate2": "4.8.5"}
MODEL = "llm"
SLOTS = (1, 4, 8, 16)
CONTEXTS = (256, 512, 2304)
"""Lengths of context: of most texts, of all mixed texts, and with room for a long prompt."""
LOAD_LIMIT = 180
"""Seconds."""
SAMPLE = 8
"""Tokens on which all must agree."""


Peers = tuple[Peer, Peer]
"""torch and CTranslate2."""


@dataclass(frozen=True)
class WarmUp:
    """Warm-up of a runner alone: seconds to compile, and the graphs by name."""

    seconds: float
    graphs: list[str]

    @property
    def decoding(self) -> int:
        return sum(name.startswith("decode") for name in self.graphs)


@dataclass(frozen=True)
class Setting:
    folder: Path
    """Folder of the checkpoint."""
    server: Server
    ready: float
    """Seconds from the server's start to its readiness, without any graphs that were compiled before."""
    bare: Peer
    torch: Peer | None
    ctranslate2: Peer | None
    clients: Clients
    cold: WarmUp
    cached: WarmUp


@contextlib.contextmanager
def setting(folder: Path, vocabulary: int, chunk: int, peers: Peers | None) -> Iterator[Setting]:
    """Setting with the checkpoint of `folder`; prompts are computed in chunks of so many tokens."""
    with ExitStack() as stack:
        graphs = stack.enter_context(tempfile.TemporaryDirectory(prefix="msx-benchmark-"))
        yaml = json.dumps(config(chunk, graphs))  # which is YAML, too
        with _bare(folder, yaml) as first:
            cold = _warm_up(first, "cold")
        bare = stack.enter_context(_bare(folder, yaml))
        cached = _warm_up(bare, "from the cache")
        began = time.monotonic()
        server = stack.enter_context(serve(folder, json.dumps(config(chunk))))
        ready = time.monotonic() - began
        progress(f"llm: the server is ready after {ready:.1f} s")
        torch, ctranslate2 = peers or (None, None)
        made = Setting(folder, server, ready, bare, torch, ctranslate2, Clients(vocabulary), cold, cached)
        _check_texts(made)
        yield made


@contextlib.contextmanager
def with_peers(folder: Path) -> Iterator[Peers]:
    """Installs them if need be. Raises NotInstalled."""
    progress(f"llm: {', '.join(VERSIONS)}, installed if they are not")
    python = install("torch", VERSIONS)
    with (
        peer("torch", python, "-m", "benchmarks.llm.torch_peer", str(folder)) as torch,
        peer("CTranslate2", python, "-m", "benchmarks.llm.ctranslate2_peer", str(folder)) as ctranslate2,
    ):
        yield torch, ctranslate2


def config(chunk: int, graphs: str | None = None) -> dict[str, Any]:
    """model-config.yaml, of the server and of the runner alone. `graphs`: where compiled ones are kept, of one program
    only: MindSpore finds them by the order in which they were compiled."""
    return {
        "minWorkers": 1,
        "maxWorkers": 1,
        "startupTimeout": LOAD_LIMIT,
        "maxConcurrent": 1024,
        "maxTotalTokens": CONTEXTS[-1],
        "contextBuckets": CONTEXTS[:-1],
        "slotBuckets": SLOTS,
        "prefillBuckets": [*takewhile(lambda size: size < chunk, (32, 128, 512)), chunk],
        "maxBatchPrefillTokens": chunk,
        "mindspore": {"compileCache": graphs or False},
    }


def _bare(folder: Path, yaml: str) -> contextlib.AbstractContextManager[Peer]:
    return peer("the runner", Path(sys.executable), "-m", "benchmarks.llm.bare_runner", str(folder), yaml)


def _warm_up(bare: Peer, how: str) -> WarmUp:
    made = WarmUp(**bare.ask("warm_up"))
    progress(f"llm: {len(made.graphs)} graphs {how} in {made.seconds:.1f} s")
    return made


@contextlib.contextmanager
def serve(folder: Path, yaml: str) -> Iterator[Server]:
    options = PackOptions(
        model_name=MODEL, handler="text_generation", extra_files=str(folder), archive_format="zip-store"
    )
    with store_of(options, yaml) as store, started(store, MODEL, tokens=False, limit=LOAD_LIMIT) as server:
        yield server


def _check_texts(made: Setting) -> None:
    """Checks that all have the same model: figures of different models cannot be compared."""
    [asked] = made.clients.alike(1, 24, SAMPLE)
    said: dict[str, list[int]] = {"the server": text_of(made.server.address, asked)}
    for one in filter(None, (made.bare, made.torch, made.ctranslate2)):
        said |= one.ask("text", prompt=asked.prompt, tokens=SAMPLE)
    if len({tuple(tokens) for tokens in said.values()}) > 1:
        raise click.ClickException(f"They do not say the same, so they have not the same model: {said}")
