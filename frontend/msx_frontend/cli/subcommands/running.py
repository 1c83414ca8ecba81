"""`msx-serve stop`, `status`, `models`, `backup`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.status_socket import Status
from msx_frontend.cli import commands
from msx_frontend.cli.status import asked, columns
from msx_frontend.cli.subcommands.selection import options_of, selected, selects_server
from msx_frontend.models.versions.states import ModelState

EVERY = 1.0
"""Seconds between two looks of `status --watch`."""
PATH = click.Path(path_type=Path)


@click.command()
@selects_server
def stop(**flags: Any) -> None:
    """Stop the running server, and wait for its end. 0 also when none runs."""
    sys.exit(commands.stop(options_of(**flags)))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a server.")
@click.option("--watch", is_flag=True, help="Look again every second, until Ctrl-C.")
@selects_server
def status(as_json: bool, watch: bool, **flags: Any) -> None:
    """The running servers, their models and workers. 1 when none runs, or one is not well."""
    if watch:
        _watch(selected(**flags))
        return
    if not as_json:
        sys.exit(commands.status(options_of(**flags)))
    infos = commands.running(options_of(**flags))
    found = [described(info) for info in infos]
    for one in found:
        click.echo(json.dumps(one))
    sys.exit(0 if found and all(one["well"] for one in found) else 1)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@selects_server
def models(as_json: bool, **flags: Any) -> None:
    """The models of a running server, with version, state and workers."""
    info = selected(**flags)
    versions = _status(info).versions
    rows = [
        {
            "model": one["modelName"],
            "version": one["modelVersion"],
            "state": one["state"],
            "workers": f"{sum(worker['status'] == 'READY' for worker in one['workers'])}/{len(one['workers'])}",
            "url": one["modelUrl"],
        }
        for one in versions
    ]
    if as_json:
        click.echo(json.dumps(rows))
    elif rows:
        columns([tuple(rows[0]), *(tuple(map(str, row.values())) for row in rows)])
    else:
        click.echo("No models are registered.")


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@selects_server
def backup(folder: Path, **flags: Any) -> None:
    """Copy the state of the server into DIR, whether it runs or not."""
    sys.exit(commands.backup(options_of(**flags, backup=folder)))


def described(info: InstanceInfo) -> dict[str, Any]:
    """Object that `status --json` prints: places, pid, versions as describe has them, devices, the supervisor, and
    whether all is well."""
    common = {"pid": info.pid, "stateFolder": str(info.state_folder), **info.places()}
    try:
        status = asked(info)
    except (OSError, ValueError) as error:
        return {**common, "well": False, "error": str(error)}
    well = not status.not_loaded and all(one["state"] != ModelState.FAILED.value for one in status.versions)
    found = {"notLoaded": status.not_loaded, "versions": status.versions, "devices": status.devices}
    if status.supervisor is not None:
        found["supervisor"] = status.supervisor
    return {**common, "well": well, **found}


def _status(info: InstanceInfo) -> Status:
    try:
        return asked(info)
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise click.ClickException(f"The server (pid {info.pid}) does not answer: {error}") from None


def _watch(info: InstanceInfo) -> None:
    from rich.live import Live

    try:
        with Live(_table(_status(info)), refresh_per_second=4) as live:
            while True:
                time.sleep(EVERY)
                live.update(_table(_status(info)))
    except KeyboardInterrupt:
        return


def _table(status: Status) -> Any:
    from rich.table import Table

    table = Table("model", "state", "queue", "worker", "pid", "status", "memory", box=None)
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for one in status.versions:
        name = f"{one['modelName']} {one['modelVersion']}"
        queue = str(one.get("jobQueueStatus", {}).get("pendingRequests", ""))
        for worker in one["workers"] or [{}]:
            memory = f"{worker['memoryUsage'] / 1e6:.0f} MB" if "memoryUsage" in worker else "-"
            cells = (str(worker.get("id", "-")), str(worker.get("pid", "-")), str(worker.get("status", "-")), memory)
            table.add_row(name, one["state"], queue, *cells)
            name = queue = ""
    return table
