"""What `msx-serve` does for each of its flags. Each command returns the exit code."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import psutil

from msx_frontend.instance import InstanceInfo, all_running, running_on

STOP_LIMIT = 90.0
"""Seconds that `--stop` waits: longer than the server's own limits."""

NOT_RUNNING = "MSX is not currently running."


class _SeveralServersError(Exception):
    """The user has been told to say which."""


@dataclass(frozen=True)
class Options:
    models: tuple[str, ...]
    model_store: Path | None
    workflow_store: Path | None
    plugins_path: str | None
    ts_config: Path | None
    foreground: bool
    ncs: bool
    log_config: Path | None
    enable_model_api: bool | None
    disable_token_auth: bool | None
    wait: bool = False
    wait_timeout: float = 600.0
    argv: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def overrides(self) -> dict[str, Any]:
        """The flags as fields of ServerConfig; None where a flag was not given."""
        return {
            "model_store": self.model_store,
            "workflow_store": self.workflow_store,
            "plugins_path": self.plugins_path,
            "load_models": self.models or None,
            "log_config": self.log_config,
            "enable_model_api": self.enable_model_api,
            "disable_token_authorization": self.disable_token_auth,
            "snapshots": False if self.ncs else None,
        }


def start(options: Options) -> int:
    from msx_frontend.launch import run_in_background, run_in_foreground

    if missing := next(_missing(options), None):
        click.echo(missing, err=True)
        return 1
    return run_in_foreground(options) if options.foreground else run_in_background(options)


def _missing(options: Options) -> Iterator[str]:
    """What a flag or variable names and is not there, in TorchServe's words."""
    temp = options.env.get("TEMP")
    if temp and not os.path.isdir(temp):
        yield f"Invalid temp directory: {temp}, please check TEMP environment variable."
    ts_config = options.env.get("TS_CONFIG_FILE") or options.ts_config
    for flag, file in (("--log-config", options.log_config), ("--ts-config", ts_config)):
        if file and not os.path.isfile(file):
            yield f"{flag} file not found: {file}"
    for flag, folder in (("--model-store", options.model_store), ("--workflow-store", options.workflow_store)):
        if folder and not folder.is_dir():
            yield f"{flag} directory not found: {folder}"


def stop(options: Options) -> int:
    """That none runs is no failure: scripts of TorchServe stop before they start."""
    try:
        info = _the_one(options.model_store)
    except _SeveralServersError:
        return 1
    if info is None:
        click.echo(NOT_RUNNING)
        return 0
    process = psutil.Process(info.pid)
    process.send_signal(signal.SIGTERM)
    if not _ended(process, STOP_LIMIT):
        click.echo(
            f"MSX (pid {info.pid}) has not stopped within {STOP_LIMIT:g} s; it is still finishing work.", err=True
        )
        return 1
    click.echo("MSX has stopped.")
    return 0


def _ended(process: psutil.Process, limit: float) -> bool:
    """A server that only waits to be reaped has ended: in a container that may never come."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def status(options: Options) -> int:
    """1 when no server runs, one does not answer, or a model of one has failed: a script may rely on it."""
    from msx_frontend.status import show

    infos = [info for info in [_of_store(options.model_store)] if info] if options.model_store else all_running()
    if not infos:
        click.echo(NOT_RUNNING, err=True)
        return 1
    healthy = [show(info) for info in infos]
    return 0 if all(healthy) else 1


def _of_store(model_store: Path) -> InstanceInfo | None:
    return running_on(model_store.resolve())


def _the_one(model_store: Path | None) -> InstanceInfo | None:
    """The server of this model store, of the current folder, or the only one; None where none runs."""
    found = _of_store(model_store or Path.cwd())
    if found is None and model_store is None:
        running = all_running()
        if len(running) > 1:
            stores = ", ".join(info.model_store for info in running)
            click.echo(f"Several servers are running; say which by --model-store: {stores}", err=True)
            raise _SeveralServersError
        found = running[0] if running else None
    return found
