"""Leftovers of killed servers, which are removed: nobody uses them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from msx_archiver.sizes import human
from msx_core.private_folder import left
from msx_frontend.assembly.left_behind import LeftBehind, remove_folder, remove_left
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.config.state_folder import state_folder, usual_folders
from msx_frontend.findings import Finding, ok, warning

NAME = "left behind"
MOST_NAMES = 8


def check_left(machine: Machine) -> Iterator[Finding]:
    """A server of a temporary folder has its state in it."""
    temporary = [Path(path) for path in left(tempfile.gettempdir())]
    states = dict.fromkeys([*_state_folders(machine), *(folder / "state" for folder in temporary)])
    found = [one for folder in states if (one := remove_left(folder)) is not None]
    found += [remove_folder(folder) for folder in temporary]
    for one in found:
        yield from _told(one)
    for process in dict.fromkeys(process for one in found for process in one.processes):
        yield _outlived(process)
    if not found:
        yield ok(NAME, "nothing of servers that were killed")


def _state_folders(machine: Machine) -> list[Path]:
    """State folders of this configuration, and of killed servers in the list of this user's."""
    config = machine.config
    own = [state_folder(config).path, *usual_folders(config.model_store)]
    return [*own, *(info.state_folder for info in machine.killed)]


def _told(one: LeftBehind) -> Iterator[Finding]:
    if one.names:
        more = f" and {len(one.names) - MOST_NAMES} more" if len(one.names) > MOST_NAMES else ""
        names = ", ".join(one.names[:MOST_NAMES])
        yield ok(NAME, f"removed what a killed server had in {one.folder} ({human(one.size)}): {names}{more}")
    if one.stayed:
        yield warning(
            NAME, f"what a killed server had in {one.folder} stays: {one.stayed}", "Run doctor as that server's user."
        )


def _outlived(process: str) -> Finding:
    return warning(
        NAME,
        f"process {process} was started by a worker of a killed server, and goes on",
        f"End it, if it is of no use: `kill {process.split()[0]}`.",
    )
