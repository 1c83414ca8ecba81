"""Limits of a worker process and the cores that it runs on, set before it runs anything of its model."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msx_frontend.config.worker_rights import User

LAUNCHER = Path(__file__).with_name("confine.py")


@dataclass(frozen=True)
class Confinement:
    """`limits` are names of setrlimit(2), without RLIMIT_, and what soft and hard become."""

    user: User | None = None
    limits: tuple[tuple[str, int], ...] = ()
    no_new_privileges: bool = False
    cores: tuple[int, ...] = ()
    """Cores that it runs on; none where it is not bound."""

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, confined. The launcher runs in the server's own interpreter, isolated (-I, -S)."""
        options = [f"--limit={name}={number}" for name, number in self.limits]
        if (user := self.user) is not None:
            options += [f"--user={user.uid}", f"--group={user.gid}", f"--groups={','.join(map(str, user.groups))}"]
        if self.cores:
            options.append(f"--cores={','.join(map(str, self.cores))}")
        if self.no_new_privileges:
            options.append("--no-new-privileges")
        return [sys.executable, "-I", "-S", str(LAUNCHER), *options, "--", *command] if options else list(command)

    def furnish(self, folder: Path) -> None:
        """The worker's own, and its user's alone, where there is one. Raises OSError."""
        if self.user is not None:
            for own in (folder, *(folder / name for name in OWN_FOLDERS.values())):
                own.mkdir(mode=0o700, exist_ok=True)
                os.chown(own, self.user.uid, self.user.gid)
                own.chmod(0o700)

    def give(self, pipe: int) -> None:
        """Else it could write to its stdout, but not open /dev/stdout."""
        if self.user is not None:
            os.fchown(pipe, self.user.uid, self.user.gid)

    def environment(self, folder: Path) -> dict[str, str]:
        """Variables of folders of its own: those of the server's user are closed to it."""
        if self.user is None:
            return {}
        name = f"user{self.user.uid}"
        own = {variable: str(folder / place) for variable, place in OWN_FOLDERS.items()}
        return {**own, "TEMP": own["TMPDIR"], "TMP": own["TMPDIR"], "USER": name, "LOGNAME": name}


OWN_FOLDERS = {"HOME": ".home", "XDG_CACHE_HOME": ".cache", "TMPDIR": ".tmp"}
"""Place in its working folder by variable."""

FREE = Confinement()
