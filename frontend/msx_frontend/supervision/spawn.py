"""The start of a worker's process, whoever is its parent."""

import os
import subprocess
from collections.abc import Mapping, Sequence


def spawn(
    command: Sequence[str],
    inherited: Sequence[tuple[str, int]],
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
    work_dir: str | os.PathLike[str],
) -> subprocess.Popen[bytes]:
    """Start it in a session of its own. It inherits descriptors, and finds each by the option before it. Raises
    OSError."""
    return subprocess.Popen(
        [*command, *(f"{option}={fd}" for option, fd in inherited)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        pass_fds=[fd for _, fd in inherited],
        cwd=work_dir,
        env=dict(env),
        start_new_session=True,
    )
