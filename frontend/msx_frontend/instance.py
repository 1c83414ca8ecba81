"""The running servers of this user: one lock and one description per state folder, and an index of all."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec
import platformdirs

from msx_archiver.room import why
from msx_frontend.pid_file import PidFile
from msx_frontend.start_errors import StartError
from msx_frontend.whole_file import NotWritten, sweep, write_whole

STATE_DIR = ".msx"


class InstanceError(StartError):
    """Another server uses this model store, or there is none where one is expected."""


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a running server tells of itself in `<model-store>/.msx/server.json`."""

    pid: int
    model_store: str
    inference: str
    management: str
    metrics: str | None
    grpc_inference: str
    grpc_management: str
    certificate: str | None = None
    """In PEM, where listeners speak TLS: who asks this server trusts it alone."""
    key_file: str | None
    status_socket: str | None = None
    """What `--status` asks; None where the folder of the state can have no socket."""
    log_file: str | None
    started_at: float
    not_loaded: list[str] = []
    """Why models that it should have started with are not there."""
    configuration: str = ""
    """The file of its settings, or that there is none."""
    state: str = ""
    """The file in which it remembers its models."""
    models: str = ""
    """What it started with: asked for, and remembered."""
    hint: str = ""

    def places(self) -> dict[str, str]:
        """What it read, where it listens, where its tokens and its log are; as texts for the user."""
        read = {"config": self.configuration, "state": self.state, "models": self.models}
        found = {
            **{name: text for name, text in read.items() if text},
            "inference": self.inference,
            "management": self.management,
            "metrics": self.metrics or "off",
            "gRPC": f"{self.grpc_inference}, management {self.grpc_management}",
            "tokens": self.key_file or "off (--disable-token-auth)",
        }
        return {**found, "log": self.log_file} if self.log_file else found

    def summary(self) -> str:
        return ", ".join(f"{name} {place}" for name, place in self.places().items())


class Instance:
    """Held by a server while it lives. A server that was killed leaves files, but no lock: they count for nothing."""

    def __init__(self, model_store: Path) -> None:
        """Raises InstanceError when another server holds this model store, or it cannot be written."""
        self.state_dir = model_store / STATE_DIR
        self._pid_file = PidFile()
        try:
            self.state_dir.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.state_dir / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InstanceError(
                f"The model store {model_store} cannot be written: {why(error, model_store)}. "
                f"The server keeps its state in {self.state_dir}."
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            running = _read(self.state_dir / "server.json")
            who = f" (pid {running.pid}, inference at {running.inference})" if running else ""
            raise InstanceError(
                f"MSX is already running on the model store {model_store}{who}, please use msx-serve --stop to stop it."
            ) from None
        for aside in self.state_dir.glob("server.*.tmp"):  # of a server that was killed
            aside.unlink(missing_ok=True)
        sweep(_index(), "*")

    def publish(self, info: InstanceInfo) -> None:
        """Raises InstanceError."""
        self._pid_file.write()
        data = msgspec.json.format(msgspec.json.encode(info), indent=2)
        try:
            for path in (self.state_dir / "server.json", _index() / f"{info.pid}.json"):
                write_whole(path, data)
        except NotWritten as error:
            raise InstanceError(f"{error}.") from error

    def close(self) -> None:
        for path in (self.state_dir / "server.json", _index() / f"{os.getpid()}.json"):
            path.unlink(missing_ok=True)
        self._pid_file.remove()
        os.close(self._lock)


def running_on(model_store: Path) -> InstanceInfo | None:
    """The server that holds this model store now."""
    state_dir = model_store / STATE_DIR
    return _read(state_dir / "server.json") if _is_locked(state_dir / "server.lock") else None


def all_running() -> list[InstanceInfo]:
    """All servers of this user; what a killed one left in the index is removed."""
    found: list[InstanceInfo] = []
    for path in sorted(_index().glob("*.json")):
        info = _read(path)
        if info is not None and (now := running_on(Path(info.model_store))) is not None and now.pid == info.pid:
            found.append(now)
        else:
            path.unlink(missing_ok=True)
    return found


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


def _index() -> Path:
    return Path(platformdirs.user_state_dir("msx-serve")) / "servers"


__all__ = ["Instance", "InstanceError", "InstanceInfo", "all_running", "running_on"]
