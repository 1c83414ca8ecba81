"""A server of its own for a benchmark: temporary store, free ports on loopback, nothing left at the end."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.load.client import Address, answers
from benchmarks.servers.family import family_of
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack

HANDLERS = Path(__file__).parents[1] / "handlers"
START_LIMIT = 60.0
ALL = "all"
"""Models of a store."""
CONFIG = """\
inference_address=http://127.0.0.1:0
management_address=http://127.0.0.1:0
metrics_address=http://127.0.0.1:0
grpc_inference_port=0
grpc_management_port=0
enable_model_api=true
"""


OWN_PROPERTIES: list[str] = []
"""Further lines of config.properties of servers that are started by this environment's `msx-serve`."""
OTHERS_PROPERTIES: list[str] = []
"""Further lines for servers that another `msx-serve` starts."""


@dataclass(frozen=True)
class Server:
    store: Path
    info: dict[str, Any]
    program: Path
    """The `msx-serve` that it was started by."""

    @property
    def address(self) -> Address:
        host, _, port = self.info["inference"].rpartition("//")[2].rpartition(":")
        return Address(host, int(port), self._token())

    @property
    def management(self) -> str:
        """The management API's URL."""
        url: str = self.info["management"]
        return url

    @property
    def process(self) -> psutil.Process:
        """Its frontend. A server of --before may not tell it apart."""
        return psutil.Process(self.info.get("frontend") or self.info["pid"])

    def family(self) -> list[psutil.Process]:
        """The server's process, then its workers'."""
        return [self.process, *self.workers()]

    def workers(self) -> list[psutil.Process]:
        return [one for one in family_of(self.process) if _is_worker(one)]

    def _token(self) -> str | None:
        if self.info["key_file"] is None:
            return None
        token: str = json.loads(Path(self.info["key_file"]).read_text())["inference"]["key"]
        return token


def handlers_of(program: Path | None) -> Path:
    """Return the folder of handlers for this `msx-serve`: its checkout's, where it is in one's virtual environment."""
    found = program and program.absolute().parents[2].joinpath("benchmarks", "handlers")
    return found if found and found.is_dir() else HANDLERS


@contextlib.contextmanager
def new_store(service: str, config: str = "", *modules: str) -> Iterator[Path]:
    """A model store with the one model `service`, of benchmarks/handlers; `config` is its model-config.yaml.

    `modules` are others of benchmarks/handlers that it imports.
    """
    handler, *extra = (str(HANDLERS / f"{name}.py") for name in (service, *modules))
    options = PackOptions(model_name=service, handler=handler, extra_files=",".join(extra) or None)
    with store_of(options, config) as store:
        yield store


@contextlib.contextmanager
def store_of(options: PackOptions, config: str) -> Iterator[Path]:
    """A model store with the one model that `options` packs."""
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        yaml, store = Path(folder, "model-config.yaml"), Path(folder, "store")
        yaml.write_text(config)
        Path(folder, "config.properties").write_text(CONFIG)
        store.mkdir()
        pack(replace(options, config_file=str(yaml), export_path=store))
        yield store


@contextlib.contextmanager
def serve(
    service: str, config: str = "", *, tokens: bool = False, properties: str = "", program: Path | None = None
) -> Iterator[Server]:
    """A server that has this model, ready. `properties` are further lines of its config.properties."""
    with new_store(service, config) as store:
        with Path(store.parent, "config.properties").open("a") as file:
            file.write(properties)
        with started(store, service, tokens=tokens, program=program) as server:
            yield server


@contextlib.contextmanager
def serve_stages(service: str, config: str, program: Path | None = None) -> Iterator[Server]:
    """A server that has the model of this name, ready, whose stages are in this file of benchmarks/handlers."""
    options = PackOptions(model_name=service, extra_files=str(handlers_of(program) / f"{service}.py"))
    with store_of(options, config) as store, started(store, service, tokens=False, program=program) as server:
        yield server


@contextlib.contextmanager
def started(
    store: Path, model: str, *, tokens: bool, limit: float = START_LIMIT, program: Path | None = None
) -> Iterator[Server]:
    """A server that has this model of the store, ready within `limit` seconds."""
    server = start(store, model, tokens=tokens, program=program)
    try:
        wait_ready(server, limit)
        yield server
    finally:
        stop(server)


def start(store: Path, service: str, *, tokens: bool, program: Path | None = None) -> Server:
    """`msx-serve --start`, as a user types it, with this model or ALL; returns when the command does.

    `program` is an `msx-serve` of another checkout; by default it is this environment's.
    """
    settings = store.parent / "config.properties"
    if further := OWN_PROPERTIES if program is None else OTHERS_PROPERTIES:
        settings = store.parent / ("own.properties" if program is None else "others.properties")
        settings.write_text("\n".join([settings.with_name("config.properties").read_text(), *further, ""]))
    program = (program or _own_program()).absolute()
    flags = ["--ts-config", str(settings), "--model-store", str(store)]
    flags += [
        "--models",
        service if service == ALL else f"{service}.mar",
        *([] if tokens else ["--disable-token-auth"]),
    ]
    done = _run(program, "--start", *flags, folder=store.parent)
    if done.returncode:
        raise click.ClickException(f"The server did not start: {done.stderr.strip() or done.stdout.strip()}")
    return Server(store, json.loads((store / ".msx" / "server.json").read_text()), program)


def wait_ready(server: Server, limit: float = START_LIMIT) -> None:
    deadline = time.monotonic() + limit
    while not answers(server.address, "/readyz"):
        if time.monotonic() > deadline:
            raise click.ClickException(f"The model is not ready after {limit:g} s.\n{_log(server)}")
        time.sleep(0.02)


def stop(server: Server) -> None:
    """Stops it in order, or else kills it: no process may be left that would disturb the next measurement."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = family_of(server.process)
        done = _run(server.program, "--stop", "--model-store", str(server.store), folder=server.store.parent)
        alive = _still_there(family, 5.0)
        for process in alive:
            process.kill()
        if done.returncode or alive:
            raise click.ClickException(f"The server did not stop in order: {done.stderr.strip()}\n{_log(server)}")


def _own_program() -> Path:
    program = Path(sys.executable).with_name("msx-serve")
    if not program.exists():
        raise click.ClickException(f"There is no {program}: install MSX for this Python (pip install -e '.[dev]').")
    return program


def _run(program: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line: Sequence[str] = [str(program), *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=START_LIMIT, check=False)


def _log(server: Server) -> str:
    log = Path(server.info["log_file"] or "")
    return log.read_text()[-2000:] if log.is_file() else ""


def _still_there(family: list[psutil.Process], limit: float) -> list[psutil.Process]:
    """The processes that have not ended by then. A zombie counts as ended."""
    deadline = time.monotonic() + limit
    while alive := [process for process in family if _runs(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return alive


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _is_worker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "msx_backend.worker" in process.cmdline()
    return False
