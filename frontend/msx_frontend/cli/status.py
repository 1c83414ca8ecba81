"""`msx-serve --status`: the servers, their models and workers, as a table."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.status_socket import Status, ask
from msx_frontend.cli.device_table import device_rows, devices_of
from msx_frontend.cli.waiting_command import started_text
from msx_frontend.models.versions.states import ModelState
from msx_frontend.visible import visible

HEADINGS = ("model", "version", "state", "worker", "pid", "status", "devices", "memory")
GAP, LEAST = "  ", 10
"""Gap between two columns; and the characters to which one is cut at most."""
NO_MODELS = "no models are registered: start with --models FILE.mar, or with --enable-model-api and register one"


def show(info: InstanceInfo) -> bool:
    """Ask the server and print its status. False when it does not answer, or a model has failed or was not loaded."""
    try:
        status = asked(info)
    except (OSError, ValueError) as error:
        click.echo(_running_text(info))
        click.echo(f"  It does not answer: {error}")
        return False
    click.echo(_running_text(msgspec.structs.replace(info, not_loaded=status.not_loaded)))
    versions = sorted(status.versions, key=lambda version: str(version["modelName"]))
    rows = [row for version in versions for row in _rows(version)]
    if rows:
        columns([HEADINGS, *rows])
    else:
        click.echo(f"{GAP}{NO_MODELS}")
    if (line := supervisor_line(status.supervisor)) is not None:
        click.echo(f"{GAP}{line}")
    if devices := device_rows(status.devices):
        columns(devices)
    for version in versions:
        if reason := version.get("reason"):
            click.echo(visible(f"  {version['modelName']} {version['modelVersion']}: {reason}"))
    for line in sorted({line for version in versions for line in _unhealthy(version)}):
        click.echo(f"  {line}")
    return not status.not_loaded and all(version["state"] != ModelState.FAILED.value for version in versions)


def supervisor_line(supervisor: dict[str, Any] | None) -> str | None:
    """None without one, and where it is the server's own program."""
    if supervisor is None or not supervisor["another"]:
        return None
    program = f"release {supervisor['release']} ({visible(supervisor['python'])})"
    return f"The supervisor (pid {supervisor['pid']}) is that of {program}: keep that environment."


def _running_text(info: InstanceInfo) -> str:
    return started_text(info).replace("started", "running", 1)


def asked(info: InstanceInfo) -> Status:
    """Raises OSError, ValueError."""
    if info.status_socket is None:
        raise ValueError("it has no socket for --status; its log says why")
    return ask(Path(info.status_socket))


def _rows(version: dict[str, Any]) -> list[tuple[str, ...]]:
    head = (version["modelName"], version["modelVersion"], version["state"])
    rows: list[tuple[str, ...]] = []
    for worker in version["workers"]:
        rows.append((*head, *_worker(worker)))
        rows += [("", "", "", *_rank(worker["id"], rank)) for rank in worker.get("ranks", [])]
    return rows or [(*head, "-", "-", "-", "-", "-")]


def _unhealthy(version: dict[str, Any]) -> list[str]:
    return [f"{_device(**one)} is unhealthy: {one['health']}" for one in version.get("unhealthyDevices", [])]


def _device(device: int, id: str, **_: str) -> str:
    """The driver's id, if it differs from the server's number."""
    return f"device {device}" + ("" if id == str(device) else f" (id {id})")


def _worker(worker: dict[str, Any]) -> tuple[str, ...]:
    devices = _on_nodes(worker["nodes"]) if "nodes" in worker else devices_of(worker)
    return worker["id"], str(worker.get("pid", "-")), worker["status"], devices, _megabytes(worker)


def _rank(worker: str, rank: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{worker} rank {rank['rank']}",
        str(rank.get("pid", "-")),
        rank["state"],
        rank.get("host", ""),
        _megabytes(rank),
    )


def _on_nodes(nodes: dict[str, list[str]]) -> str:
    """`node-a:0,1 node-b:0,1`."""
    return " ".join(f"{name}:{','.join(devices) or 'cpu'}" for name, devices in nodes.items())


def _megabytes(described: dict[str, Any]) -> str:
    return f"{described['memoryUsage'] / 1e6:.0f} MB"


def columns(rows: list[tuple[str, ...]]) -> None:
    """Print a table. On a terminal it is not wider than that; elsewhere nothing is cut."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table_lines(rows, room):
        click.echo(line)


def table_lines(rows: list[tuple[str, ...]], room: int | None) -> Iterator[str]:
    """The lines of a table of at most `room` columns, if its widest cells can be cut so far."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if room is not None:
        widths = fitted(widths, room - len(GAP) * len(widths))
    for row in rows:
        cells = (shortened(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (GAP + GAP.join(cells)).rstrip()


def fitted(widths: list[int], room: int) -> list[int]:
    """The widest give way first, down to what a name needs to be known."""
    widths = [*widths]
    while sum(widths) > room and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def shortened(text: str, width: int) -> str:
    """Shorten a text in the middle: names differ at their ends."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"
