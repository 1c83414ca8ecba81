"""The user that runs the workers of an archive, and the folders that this user may open."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from zlib import crc32

import psutil

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.config.worker_rights import Users, worker_limits, worker_users
from msx_frontend.worker_modules import WORKER
from msx_frontend.workers.confinement import Confinement

_CHECK_LIMIT = 60.0
_MODES = {"": 0o711, "run": 0o711, "models": 0o711, "compiled": 0o711, "environments": 0o755}
_CLOSED = ("logs", "archives", "downloads", "home", "cache")


class WorkerRights:
    """Rights of workers. With a range in `worker_user`, each archive has a user of its own as long as a version uses
    it."""

    def __init__(self, config: ServerConfig, folder: StateFolder, in_use: Callable[[str], bool]) -> None:
        """`in_use` returns whether any version uses a digest. Raises ServerConfigError."""
        self._folder = folder
        self._in_use = in_use
        self._users = worker_users(config)
        self._limits = worker_limits(config.worker_limits)
        wanted = config.worker_no_new_privileges
        self._no_new_privileges = self._users is not None if wanted is None else wanted
        self._taken: dict[str, int] = {}
        """The user of each digest."""
        self._taking = asyncio.Lock()

    def of(self, digest: str) -> Confinement:
        """The rights of a worker; call `prepare` before."""
        user = None if self._users is None else self._users.user(self._taken[digest])
        return Confinement(user, self._limits, self._no_new_privileges)

    def of_any(self) -> Confinement:
        """The rights that some worker has, to check what all of them need."""
        user = None if self._users is None else self._users.user(self._users.uids[0])
        return Confinement(user, (), self._no_new_privileges)

    def open(self, python: str, env: Mapping[str, str]) -> None:
        """Open the state folder, at the start, so far that workers reach their own folders only.

        Takes as long as a start of Python. Raises ServerConfigError where the workers' user cannot read Python or
        MSX.
        """
        if self._users is None:
            return
        for name, mode in _MODES.items():
            (self._folder.path / name).mkdir(exist_ok=True)
            (self._folder.path / name).chmod(mode)
        for name in _CLOSED:
            if (self._folder.path / name).is_dir():
                (self._folder.path / name).chmod(0o700)
        self._try(self._users.uids[0], python, env)

    async def prepare(self, digest: str) -> None:
        """Call this before a worker starts. Raises ServiceUnavailable when there are more archives than users."""
        if self._users is None:
            return
        async with self._taking:
            await asyncio.to_thread(self._prepare, self._users, digest)

    def _prepare(self, users: Users, digest: str) -> None:
        uid = self._taken[digest] = self._taken.get(digest) or self._free(users, digest)
        user = users.user(uid)
        unpacked = self._folder.models / digest
        if unpacked.is_dir():  # else a folder that is used where it is
            os.chown(unpacked, 0, user.gid)
            unpacked.chmod(0o750)
        compiled = self._folder.compiled / digest
        if compiled.is_dir() and compiled.stat().st_uid != uid:  # what another user has left is not to be trusted
            shutil.rmtree(compiled)
        compiled.mkdir(mode=0o700, exist_ok=True)
        os.chown(compiled, user.uid, user.gid)

    def _free(self, users: Users, digest: str) -> int:
        """A free user, chosen by the digest, so that it is mostly the same after a restart."""
        self._taken = {one: uid for one, uid in self._taken.items() if self._in_use(one)}
        uids = users.uids
        if not users.is_range:
            return uids[0]
        taken = {*self._taken.values(), *_running()}
        start = crc32(digest.encode()) % len(uids)
        for step in range(min(len(uids), len(taken) + 1)):
            if (uid := uids[(start + step) % len(uids)]) not in taken:
                return uid
        raise ServiceUnavailable(
            f"Each archive has a user of its own, and all {len(uids)} of worker_user ({uids[0]}-{uids[-1]}) are taken: "
            "unregister a model, or widen the range."
        )

    def _try(self, user: int, python: str, env: Mapping[str, str]) -> None:
        run = str(self._folder.run)
        code = f"import os, sys; os.chdir(sys.argv[1]); import {WORKER}"
        done = subprocess.run(
            self.of_any().command([python, "-c", code, run]),
            env={**env, "HOME": run},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_CHECK_LIMIT,
            check=False,
        )
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or [f"it exited with code {done.returncode}"])[-1]
            raise ServerConfigError(
                f"worker_user: user {user} cannot run workers: {why}. It must be able to read {python} with its "
                f"packages, and to pass through the folders above {self._folder.path}."
            )


def _running() -> set[int]:
    """The users of all processes, also of those that have left their worker's group, or belong to another server."""
    return {uids.real for one in psutil.process_iter(["uids"]) if (uids := one.info["uids"])}
