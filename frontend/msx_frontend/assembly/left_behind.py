"""Remove the leftovers of servers that were killed (SIGKILL), as the next start in their state folder would.

Shared memory has no names, and the server makes no cgroups: nothing is left of these.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.instance import alone_in, last_in
from msx_frontend.assembly.pid_file import PidFile
from msx_frontend.assembly.status_socket import NAME as STATUS_SOCKET
from msx_frontend.assembly.upgrade_orders import NAME as ORDERS
from msx_frontend.config.state_folder import INFO
from msx_frontend.environments.build import is_unfinished
from msx_frontend.keys.locked_file import remove_left as remove_left_keys
from msx_net.connections.listen import remove_left_socket

RUN, UNIX = "run", "unix:"


class LeftBehind(NamedTuple):
    folder: Path
    """The state folder, or the temporary folder of a server without one."""
    names: tuple[str, ...]
    """Removed files and folders: below `folder`, or a whole path."""
    size: int
    """Bytes on the disk."""
    stayed: str = ""
    """Why not everything was removed; "" if it was."""
    processes: tuple[str, ...] = ()
    """Processes that workers started, and that have outlived the server."""


def remove_left(folder: Path) -> LeftBehind | None:
    """Remove them from a state folder. None where a server has it now, or nothing is left. Blocks."""
    try:
        with alone_in(folder) as alone:
            return _removed(folder, last_in(folder)) if alone else None
    except OSError as error:
        return (
            LeftBehind(folder, (), 0, f"{error.strerror}: {error.filename}") if os.path.exists(folder / RUN) else None
        )


def remove_own(folder: Path) -> None:
    """Remove those of this process, which has left its state folder to nobody; where another server has it by now,
    they are that one's. Blocks."""
    with contextlib.suppress(OSError), alone_in(folder) as alone:
        if alone:
            info = last_in(folder)
            _removed_in(folder)
            list(_removed_elsewhere(info) if info is not None else ())


def remove_folder(folder: Path) -> LeftBehind:
    """Remove a temporary folder that nobody has locked. Blocks."""
    size, errors, processes = _size(folder), list[str](), tuple(_processes(folder))
    shutil.rmtree(folder, onerror=lambda _, path, error: errors.append(f"{path}: {error[1]}"))
    return LeftBehind(folder, (str(folder),), size, errors[0] if errors else "", processes)


def _removed(folder: Path, info: InstanceInfo | None) -> LeftBehind | None:
    if info is not None and info.lives:  # although its lock is free: on a file system without locks, say
        return None
    processes = tuple(_processes(folder / RUN))
    names, size, stayed = _removed_in(folder)
    names += [] if info is None else list(_removed_elsewhere(info))
    return LeftBehind(folder, tuple(names), size, stayed, processes) if names or stayed or processes else None


def _removed_in(folder: Path) -> tuple[list[str], int, str]:
    """Names that were removed, their bytes, and why another one was not."""
    names, size, stayed = list[str](), 0, ""
    for path in [*_in(folder)]:
        own = _size(path)
        try:
            _remove(path)
        except OSError as error:
            stayed = stayed or f"{error.filename or path}: {error.strerror}"
        else:
            names.append(str(path.relative_to(folder)))
            size += own
    return names, size, stayed


def _in(folder: Path) -> Iterator[Path]:
    """Files and folders that the next start would remove."""
    for name in (RUN, "downloads", INFO, STATUS_SOCKET, ORDERS):
        if os.path.lexists(folder / name):
            yield folder / name
    yield from folder.glob("models/.tmp-*")
    yield from folder.glob("compiled/.tmp-*")
    yield from filter(is_unfinished, folder.glob("environments/*"))


def _remove(path: Path) -> None:
    """Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _removed_elsewhere(info: InstanceInfo) -> Iterator[str]:
    """Sockets of listeners, keys that open nothing any more, and TorchServe's pid file."""
    addresses = (info.inference, info.management, info.metrics or "")
    for path in sorted({address[len(UNIX) :] for address in addresses if address.startswith(UNIX)}):
        yield from _done(path, remove_left_socket)
    if info.key_file is not None and not info.keeps_keys:
        yield from _done(info.key_file, remove_left_keys)
    pid_file = PidFile()
    yield from _done(str(pid_file.path), lambda _: pid_file.remove_left())


def _done(path: str, remove: Callable[[str], bool]) -> Iterator[str]:
    """The path, if it was nobody's any more and was removed."""
    with contextlib.suppress(OSError):
        if remove(path):
            yield path


def _size(path: Path) -> int:
    """Bytes on the disk of a file, or of all files below a folder."""
    every = [path, *(Path(at, name) for at, _, names in os.walk(path) for name in names)]
    return sum(_blocks(one) for one in every)


def _blocks(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def _processes(folder: Path) -> Iterator[str]:
    """Processes whose working folder is below this one."""
    for process in psutil.process_iter(["pid", "name", "cwd"]):
        cwd = process.info["cwd"]
        if cwd and Path(cwd).is_relative_to(folder):
            yield f"{process.info['pid']} ({process.info['name']})"
