"""Servers of one model that take turns: all run for the whole time, and one works at a time."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.texts import MODEL
from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running
from benchmarks.servers.msx import Server, started, store_of
from msx_archiver.options import PackOptions

OURS, THEIRS, OWN = "msx-serve, vLLM's engine", "vLLM's server", "msx-serve, its own engine"
READY = 1200.0
"""Seconds: vLLM's first start compiles."""


@dataclass(frozen=True)
class Setting:
    """The same for all servers of a model. `python`: the interpreter with vLLM; `vllm`: arguments of its engine, as in
    the section of model-config.yaml; `env`: variables of all processes."""

    folder: Path
    python: Path
    vllm: Mapping[str, Any]
    env: Mapping[str, str]
    most_texts: int
    context: int


@dataclass(frozen=True)
class Contestant:
    """`pids`: the processes around the engine. Those of the own engine have it in them."""

    name: str
    address: Address
    pids: tuple[int, ...]


Serve = Callable[[Setting], AbstractContextManager[Contestant]]


@contextmanager
def by_ours(setting: Setting) -> Iterator[Contestant]:
    config = {**_workers(setting), "python": "vllm", "env": dict(setting.env), "vllm": dict(setting.vllm)}
    with _archive(setting, "vllm", config, f"pythons=vllm={setting.python}\n") as server:
        yield _of(OURS, server)


@contextmanager
def by_own(setting: Setting) -> Iterator[Contestant]:
    most = setting.most_texts
    slots = [*(count for count in (1, 4, 16, 64) if count < most), most]
    config = {**_workers(setting), "maxTotalTokens": setting.context, "slotBuckets": slots}
    with _archive(setting, "text_generation", config) as server:
        yield _of(OWN, server)


@contextmanager
def by_theirs(setting: Setting) -> Iterator[Contestant]:
    """`python -m vllm.entrypoints.openai.api_server`; both servers write a line of an access log a request."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as work:
        place = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", MODEL)
        defaults = ("--generation-config", "vllm")  # the route's, as with `generationConfig: none`
        command = [str(setting.python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(setting.folder)]
        command += [*place, *defaults, *flags(setting.vllm)]
        env = {**os.environ, **setting.env, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        address = Address("127.0.0.1", port)
        with running(THEIRS, command, Path(work), address, "/health", environment=env, limit=READY) as pid:
            yield Contestant(THEIRS, address, (pid,))


def flags(section: Mapping[str, Any]) -> list[str]:
    """The members of a section as options of the command line."""
    return [word for name, value in section.items() for word in _words(f"--{name}", value)]


def _words(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    return [option, value if isinstance(value, str) else json.dumps(value)]


def _workers(setting: Setting) -> dict[str, Any]:
    workers = {"minWorkers": 1, "maxWorkers": 1, "startupTimeout": int(READY)}
    return {**workers, "maxConcurrent": setting.most_texts, "generationConfig": "none"}


@contextmanager
def _archive(setting: Setting, handler: str, config: Mapping[str, Any], properties: str = "") -> Iterator[Server]:
    options = PackOptions(
        model_name=MODEL, handler=handler, extra_files=str(setting.folder), archive_format="zip-store"
    )
    with store_of(options, json.dumps(config)) as store:
        with (store.parent / "config.properties").open("a") as file:
            file.write(properties)
        with started(store, MODEL, tokens=False, limit=READY) as server:
            yield server


def _of(name: str, server: Server) -> Contestant:
    return Contestant(name, server.address, tuple(process.pid for process in server.family()))
