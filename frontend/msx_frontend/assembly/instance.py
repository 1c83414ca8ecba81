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
from msx_frontend.assembly.pid_file import PidFile
from msx_frontend.config.state_folder import BESIDE_MODELS, INFO, LOCK, StateFolder, usual_folders
from msx_frontend.whole_file import NotWritten, sweep, write_whole

log = logging.getLogger("msx.server")


class InstanceError(StartError):
    """Another server has this state folder, or its description cannot be written."""


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a running server, in `server.json` of its state folder."""

    pid: int
    """The process that a signal ends: the supervisor, where there is one."""
    frontend: int | None = None
    """The process that answers; None from older servers."""
    model_store: str
    state_dir: str = ""
    """The state folder. Older servers write "": theirs is `.msx` in the model store."""
    inference: str
    management: str
    metrics: str | None
    grpc_inference: str
    grpc_management: str
    certificate: str | None = None
    """Certificate in PEM, if listeners use TLS. Commands that ask this server trust only this certificate."""
    key_file: str | None
    keeps_keys: bool = True
    """The next server takes the keys of `key_file` (keep_tokens)."""
    temporary_folder: str | None = None
    """The folder of its temporary files, if a variable names it."""
    status_socket: str | None = None
    """The socket of `--status`; None if the state folder cannot have a socket."""
    log_file: str | None
    """The file of stdout and stderr, if they are redirected to one."""
    log_files: list[str] | None = None
    """The files of the log; None from older servers, which write it to `log_file`."""
    log_folder: str | None = None
    """The folder of TorchServe's log files, if they are written."""
    started_at: float
    drain_timeout: float = 30.0
    """Seconds."""
    not_loaded: list[str] = []
    """Why models of the start could not be loaded."""
    configuration: str = ""
    """The file of its settings, or a text which says that none was read."""
    state: str = ""
    """The file in which it remembers its models; without one, a text that names the folder of its caches."""
    models: str = ""
    """The models of its start: given and remembered ones."""
    hint: str = ""
    script: str = ""
    """The start script whose server it is; its listeners may have no address."""
    endpoints: list[str] = []
    """Addresses that the script has opened."""

    @property
    def state_folder(self) -> Path:
        return Path(self.state_dir or Path(self.model_store) / BESIDE_MODELS)

    @property
    def logs(self) -> list[str]:
        if self.log_files is not None:
            return self.log_files
        return [self.log_file] if self.log_file else []

    def places(self) -> dict[str, str]:
        """Its files and addresses, as texts for the user."""
        read = {"config": self.configuration, "state": self.state, "models": self.models}
        found = {**{name: text for name, text in read.items() if text}, **self._listeners()}
        if self.logs:
            found["log"] = ", ".join(self.logs)
        return {**found, "log files": self.log_folder} if self.log_folder else found

    def _listeners(self) -> dict[str, str]:
        if self.script:
            own = [self.inference, self.management, self.metrics, self.grpc_inference, self.grpc_management]
            more = [address for address in own if address]
            return {"script": self.script, "endpoints": ", ".join([*self.endpoints, *more]) or "none"}
        return {
            "inference": self.inference,
            "management": self.management,
            "metrics": self.metrics or "off",
            "gRPC": f"{self.grpc_inference}, management {self.grpc_management}",
            "tokens": self.key_file or "off (--disable-token-auth)",
        }

    def summary(self) -> str:
        return ", ".join(f"{name} {place}" for name, place in self.places().items())


class Instance:
    """A running server's lock and description. The files of a killed server are ignored, because they are not
    locked."""

    def __init__(self, state: StateFolder, *, has_pid_file: bool = True) -> None:
        """`has_pid_file`: TorchServe's file of a running server is written. Raises StateFolderError, or InstanceError
        when another server holds this folder."""
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
        if not state.is_named and (others := self._others()):
            os.close(self._lock)
            raise InstanceError(_taken(state, others[0]))
        for aside in state.path.glob("server.*.tmp"):  # of a server that was killed
            aside.unlink(missing_ok=True)
        if self._index is not None:
            sweep(self._index, "*")

    @property
    def _name(self) -> str:
        """Name of its description in the index."""
        return f"{self._pid}.json"

    def _others(self) -> list[InstanceInfo]:
        """Servers in the other default state folder: a server with `--ncs` has a folder of its own."""
        return running_in(path for path in usual_folders(self.state.model_store) if path != self.state.path)

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
    """The running servers that have locked these state folders."""
    infos = [_read(folder / INFO) for folder in folders if _is_locked(folder / LOCK)]
    return [info for info in infos if info is not None]


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


__all__ = ["Instance", "InstanceError", "InstanceInfo", "all_running", "alone_in", "last_in", "listed", "running_in"]
