"""The folder that a server writes: state, logs, folders of workers, and unpacked archives."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from msx_archiver.room import why
from msx_archiver.uses import Uses
from msx_core.start_errors import StartError
from msx_frontend.config.server_config import ServerConfig

BESIDE_MODELS = ".msx"
ENV = "MSX_STATE_DIR"
LOCK, INFO, DATABASE = "server.lock", "server.json", "state.db"


class StateFolderError(StartError):
    """It cannot be written, or belongs to another user; the message names it and the key."""


@dataclass(frozen=True)
class StateFolder:
    """Used by one server at a time, which holds the lock in it. `path` is absolute. This class names all files below
    it."""

    path: Path
    model_store: Path
    """The folder of archives. Several servers may share it if each names its own state folder."""
    is_named: bool = False
    """The user has named the folder. Else one server at a time uses the model store."""
    shared: Path | None = None
    """`cache_dir`: what several servers of a machine have in common."""

    @property
    def lock(self) -> Path:
        return self.path / LOCK

    @property
    def info(self) -> Path:
        return self.path / INFO

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    @property
    def store(self) -> Path:
        """Records of requests, where they are kept."""
        return self.path / "store.db"

    @property
    def files(self) -> Path:
        """Files that clients upload, and those that batches write."""
        return self.path / "files"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def run(self) -> Path:
        """Files of the running server only: emptied at the start and removed at the end."""
        return self.path / "run"

    @property
    def models(self) -> Path:
        """Unpacked archives, by content."""
        return (self.shared or self.path) / "models"

    @property
    def digests(self) -> Path:
        """File with the digests of archives, which each server may know by another path."""
        return self.path / "digests.json" if self.shared else self.models / "digests.json"

    @property
    def compiled(self) -> Path:
        return self._written / "compiled"

    @property
    def environments(self) -> Path:
        return self._written / "environments"

    def uses(self) -> Uses | None:
        """Who uses what lies in the shared folder; None without one."""
        return None if self.shared is None else Uses(self.shared / "users.lock")

    @property
    def ready_environments(self) -> Path | None:
        """Environments of a shared folder that is read-only: nothing is installed there."""
        return None if self.shared is None or self._written == self.shared else self.shared / "environments"

    @property
    def _written(self) -> Path:
        """A shared folder that is read-only has unpacked archives alone."""
        return self.shared if self.shared is not None and can_be_made(self.shared) else self.path

    @property
    def downloads(self) -> Path:
        """Unfinished downloads."""
        return self.path / "downloads"

    @property
    def archives(self) -> Path:
        """Complete downloads: in the model store, as with TorchServe, unless the state folder is elsewhere."""
        return self.model_store if self.is_beside_models else self.path / "archives"

    @property
    def servables(self) -> Path:
        """Folder of the archives that `--servables` has packed."""
        return self.path / "servables"

    @property
    def llm_serving(self) -> Path:
        """The model's folder that `--llm-serving` has made of links."""
        return self.path / "llm-serving"

    @property
    def huggingface(self) -> Path:
        """Models' folders that `--huggingface` has made of links."""
        return self.path / "huggingface"

    @property
    def hub(self) -> Path:
        """Folder of the files fetched from hubs, unless `hub_dir` names one."""
        return self._written / "hub"

    @property
    def hub_folders(self) -> Path:
        """Models' folders of links to what was fetched of hubs."""
        return self.path / "hub_models"

    @property
    def is_beside_models(self) -> bool:
        return self.path == self.model_store / BESIDE_MODELS

    def make(self) -> None:
        """Raises StateFolderError."""
        try:
            self._make()
            if not takes_files(self.path):
                raise PermissionError(13, os.strerror(13), str(self.path))
        except OSError as error:
            raise StateFolderError(self._refusal(error)) from None

    def _make(self) -> None:
        shared = _temporary()
        if shared in self.path.parents:  # where all users may write
            shared.mkdir(mode=0o700, exist_ok=True)
            _check_own(shared)
        self.path.mkdir(parents=True, exist_ok=True)
        if self.shared is not None:
            self._make_shared(self.shared)

    def _make_shared(self, shared: Path) -> None:
        """Make the folders that servers share; existing ones may be read-only."""
        try:
            (shared / "models").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateFolderError(
                f"cache_dir: {shared} cannot be used: {why(error, shared)}. Name a folder that this user may write, or "
                "one that has the unpacked archives already."
            ) from None

    def _refusal(self, error: OSError) -> str:
        elsewhere = f"(--state-dir, state_dir in config.properties, or {ENV})"
        if self.is_beside_models:
            return (
                f"The model store {self.model_store} cannot be written: {why(error, self.model_store)}. The server "
                f"keeps its state in {self.path}: name a folder for it {elsewhere}, or keep none (--ncs)."
            )
        return f"The state folder {self.path} cannot be written: {why(error, self.path)}. Name another one {elsewhere}."


def state_folder(config: ServerConfig) -> StateFolder:
    """`state_dir`, else `.msx` in the model store; with `--ncs` a cache: then nothing is written beside the models."""
    store = config.model_store.resolve()
    shared = config.cache_dir.resolve() if config.cache_dir is not None else None
    if config.state_dir is not None:
        return StateFolder(config.state_dir.resolve(), store, is_named=True, shared=shared)
    usual = StateFolder(store / BESIDE_MODELS, store) if config.snapshots else _cache_of(store)
    return replace(usual, shared=shared)


def usual_folders(model_store: Path) -> list[Path]:
    """The default state folders of servers of this model store."""
    store = model_store.resolve()
    return [store / BESIDE_MODELS, *_caches(store)]


def can_be_made(path: Path) -> bool:
    """Whether this user may write into that folder, or make it."""
    return takes_files(next(folder for folder in (path, *path.parents) if os.path.lexists(folder)))


def takes_files(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK, effective_ids=True)


def _cache_of(store: Path) -> StateFolder:
    caches = list(_caches(store))
    return StateFolder(next(filter(can_be_made, caches), caches[-1]), store)


def _caches(store: Path) -> Iterator[Path]:
    """Named by the path of the store: two servers with `--ncs` on one store need a `state_dir` each."""
    name = hashlib.sha256(os.fsencode(store)).hexdigest()[:16]
    for folder in (platformdirs.user_cache_path("msx-serve"), _temporary()):
        if folder.is_absolute():  # `~` stays as it is for a user without a home
            yield folder / "stores" / name


def _temporary() -> Path:
    env = os.environ  # the module tempfile would want to write there
    return Path(env.get("TEMP") or env.get("TMPDIR") or "/tmp").resolve() / f"msx-{os.geteuid()}"  # noqa: S108 - checked


def _check_own(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(13, "it is not a folder that this user alone may write", str(folder))


__all__ = [
    "BESIDE_MODELS",
    "DATABASE",
    "ENV",
    "INFO",
    "LOCK",
    "StateFolder",
    "StateFolderError",
    "can_be_made",
    "state_folder",
    "takes_files",
    "usual_folders",
]
