"""Whether a server in the background also writes its log to the stdout of the command that started it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from msx_frontend.supervision.frontend_command import CONSOLE_FD

if TYPE_CHECKING:
    from msx_frontend.logs.console import Console

PROC = Path("/proc")
LAST_LINES = 1.0
"""Seconds that the console has at the end to read the waiting lines."""


@contextlib.contextmanager
def handed_on(wanted: bool | None) -> Iterator[tuple[list[int], dict[str, str]]]:
    """The descriptors that the server inherits, and variables with their numbers; both are empty without a console."""
    try:
        fd = os.dup(1) if has_console(wanted) else None
    except OSError:  # a command without stdout
        fd = None
    if fd is None:
        yield [], {}
        return
    try:
        yield [fd], {CONSOLE_FD: str(fd)}
    finally:
        os.close(fd)


def has_console(wanted: bool | None, proc: Path = PROC, pid: int | None = None) -> bool:
    """The value of the key `console`; by default a server that a container's first process has started has a
    console.

    A caller that reads our stdout to its end, such as `$(…)`, would wait for the end of the server: it gets no
    copy.
    """
    own = proc / str(pid or os.getpid())
    stdout = _stdout(own)
    if wanted is False or stdout in (None, os.devnull):
        return False
    return (wanted or _parent(own) == 1 or stdout == _stdout(proc / "1")) and not _is_captured(own, proc)


@contextlib.contextmanager
def copied_to_console(env: Mapping[str, str]) -> Iterator[None]:
    """Copies stdout and stderr of the server to the console."""
    fd = env.get(CONSOLE_FD)
    if fd is None:
        yield
        return
    from msx_frontend.logs.console import Console

    os.environ.pop(CONSOLE_FD, None)
    os.set_inheritable(int(fd), False)
    console, streams = Console(int(fd)), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (_copied(stream, console) for stream in streams)
    try:
        yield
    finally:
        console.close(LAST_LINES)
        sys.stdout, sys.stderr = streams


def _copied(stream: TextIO, console: Console) -> TextIO:
    from msx_frontend.logs.console import CopiedStream

    return cast(TextIO, CopiedStream(stream, console))


def _is_captured(own: Path, proc: Path) -> bool:
    """Whether a process above us reads the pipe that is our stdout."""
    stdout = _stdout(own)
    return bool(stdout and stdout.startswith("pipe:")) and any(_reads(process, stdout) for process in _above(own, proc))


def _above(own: Path, proc: Path) -> Iterator[Path]:
    parent = _parent(own)
    while parent:
        yield proc / str(parent)
        parent = _parent(proc / str(parent))


def _reads(process: Path, pipe: str | None) -> bool:
    with contextlib.suppress(OSError):  # another user's, or it has ended
        return any(_link(fd) == pipe and _is_reading_end(process, fd.name) for fd in (process / "fd").iterdir())
    return False


def _is_reading_end(process: Path, fd: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        fields = dict(line.split(":", 1) for line in (process / "fdinfo" / fd).read_text().splitlines() if ":" in line)
        return int(fields.get("flags", "0"), 8) & os.O_ACCMODE == os.O_RDONLY
    return False


def _parent(process: Path) -> int:
    """The pid of the parent process; 0 if it is unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _stdout(process: Path) -> str | None:
    return _link(process / "fd" / "1")


def _link(path: Path) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
