"""The running servers of this user: a lock and a description in each state folder, and an index of all."""

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import platformdirs

from msx_archiver.room import why
from msx_core.start_errors import StartError
from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.pid_file import PidFile
from msx_frontend.config.state_folder import INFO, LOCK, StateFolder, StateFolderError, usual_folders
from msx_frontend.whole_file import NotWritten, sweep, write_whole

log = logging.getLogger("msx.server")


class InstanceError(StartError):
    """Another server has this state folder, or its description cannot be written."""


class Instance:
    """A running server's lock and description. The files of a killed server are ignored, because they are not
    locked."""

    def __init__(self, state: StateFolder, *, has_pid_file: bool = True, below: int | None = None) -> None:
        """`has_pid_file`: TorchServe's file of a running server is written. `below`: its supervisor's process. Raises
        StateFolderError, or InstanceError when another server has this folder."""
        state.make()
        self.state = state
        self._has_pid_file, self._pid_file, self._index = has_pid_file, PidFile(), _index()
        self._pid = os.getpid()
        self._left = False
        try:
            self._lock = os.open(state.lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InstanceError(f"{state.lock} cannot be written: {why(error, state.path)}.") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise InstanceError(_taken(state, _read(state.info))) from None
        if other := self._other(below):
            os.close(self._lock)
            raise InstanceError(_taken(state, other))
        for aside in state.path.glob("server.*.tmp"):  # of a server that was killed
            aside.unlink(missing_ok=True)
        if self._index is not None:
            sweep(self._index, "*")

    @property
    def _name(self) -> str:
        """Name of its description in the index."""
        return f"{self._pid}.json"

    def _other(self, below: int | None) -> InstanceInfo | None:
        """A server that waits for its next frontend, or is in the other default state folder: one with `--ncs` has a
        folder of its own."""
        before = _read(self.state.info)
        if before is not None and before.pid != below and before.starts_another:
            return before
        folders = [] if self.state.is_named else usual_folders(self.state.model_store)
        return next(iter(running_in(path for path in folders if path != self.state.path)), None)

    def publish(self, info: InstanceInfo) -> None:
        """Raises InstanceError."""
        self._pid, self._pid_file = info.pid, PidFile(pid=info.pid)
        if self._has_pid_file:
            self._pid_file.write()
        data = msgspec.json.format(msgspec.json.encode(info), indent=2)
        try:
            write_whole(self.state.info, data)
        except NotWritten as error:
            raise InstanceError(f"{error}.") from error
        self._list(self._name, data)

    def _list(self, name: str, data: bytes) -> None:
        """Only a convenience for `--stop` and `--status`: some users do not have a home."""
        try:
            if self._index is not None:
                write_whole(self._index / name, data)
        except NotWritten as error:
            log.info("%s; --stop and --status find this server by --state-dir %s", error, self.state.path)

    def leave(self) -> None:
        """Let another server have the folder, and describe itself there."""
        if self._has_pid_file:
            self._pid_file.remove()
        if self._index is not None:
            with contextlib.suppress(OSError):
                (self._index / self._name).unlink(missing_ok=True)
        os.close(self._lock)
        self._left = True

    def close(self) -> None:
        """Nothing where another server has the folder."""
        if self._left:
            return
        for path in (self.state.info, self._index and self._index / self._name):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        if self._has_pid_file:
            self._pid_file.remove()
        os.close(self._lock)


def _taken(state: StateFolder, running: InstanceInfo | None) -> str:
    who = f" (pid {running.pid}, inference at {running.inference})" if running else ""
    place = f"with the state folder {state.path}" if state.is_named else f"on the model store {state.model_store}"
    return (
        f"MSX is already running {place}{who}, please use msx-serve --stop to stop it, or give another one "
        "a --state-dir of its own."
    )


def running_in(folders: Iterable[Path]) -> list[InstanceInfo]:
    """The running servers that have locked these state folders, and those whose next frontend will."""
    found = []
    for folder in folders:
        info = _read(folder / INFO)
        if info is not None and (_is_locked(folder / LOCK) or info.starts_another):
            found.append(info)
    return found


def all_running() -> list[InstanceInfo]:
    """All running servers in the index; entries of killed servers are removed."""
    return listed().running


class Listed(NamedTuple):
    running: list[InstanceInfo]
    killed: list[InstanceInfo]


def listed() -> Listed:
    """The servers in the index, from which the killed ones are removed now."""
    found = Listed([], [])
    index = _index()
    for path in [] if index is None else sorted(index.glob("*.json")):
        info = _read(path)
        now = running_in([info.state_folder]) if info is not None else []
        if info is not None and [one.pid for one in now] == [info.pid]:
            found.running.extend(now)
            continue
        found.killed.extend([] if info is None else [info])
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return found


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """Whether no server has this state folder; then none can have it before the end of the block. False, too, where
    there has never been one. Raises OSError."""
    try:
        fd = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        alone = False
    else:
        alone = True
    try:
        yield alone
    finally:
        os.close(fd)


def last_in(folder: Path) -> InstanceInfo | None:
    """The server that has, or had, this state folder, unless it has removed its description."""
    return _read(folder / INFO)


def check_folder(folder: StateFolder, supervisor: int) -> None:
    """Check that the server below this `supervisor` has the folder: another one would have none of its state. Raises
    StateFolderError."""
    server = last_in(folder.path)
    if server is None or server.pid != supervisor:
        raise StateFolderError(
            f"state_dir, model_store: the state folder {folder.path} is not that of the server that runs, which keeps "
            "its own until it is stopped: leave these keys, or stop the server and start it anew."
        )


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _read(path: Path) -> InstanceInfo | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=InstanceInfo)
    return None


def _index() -> Path | None:
    """None for a user without a home: `~` is not expanded then."""
    path = Path(platformdirs.user_state_dir("msx-serve")) / "servers"
    return path if path.is_absolute() else None


__all__ = [
    "Instance",
    "InstanceError",
    "all_running",
    "alone_in",
    "check_folder",
    "last_in",
    "listed",
    "running_in",
]
