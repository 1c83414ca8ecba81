"""The command, or the terminal, that waits for a server that starts, and what it is told."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from msx_frontend.supervision.frontend_command import READY_FD
from msx_frontend.visible import visible

if TYPE_CHECKING:
    from msx_frontend.assembly.info import InstanceInfo


class WaitingCommand:
    """The command that waits for this server, or else the terminal."""

    def __init__(self, fd: str | None) -> None:
        self._fd = int(fd) if fd else None
        if self._fd is not None:
            os.set_inheritable(self._fd, False)
            os.environ.pop(READY_FD, None)

    @property
    def waits(self) -> bool:
        """A command waits for this server."""
        return self._fd is not None

    @property
    def pipe(self) -> list[int]:
        """The descriptor on which it is told, until then: it reads to the end."""
        return [] if self._fd is None else [self._fd]

    def started(self, info: InstanceInfo, failures: Sequence[str] = ()) -> None:
        """`failures`: why some models are not served."""
        if self._fd is not None:
            self._say({"text": started_text(info), "error": "\n".join(failures), "log": ", ".join(info.logs)})
        elif sys.stdout.isatty():
            click.echo(started_text(info))  # elsewhere the log says it, in its own format

    def failed(self, reason: str) -> int:
        if self._fd is not None:
            self._say({"error": reason})
        with contextlib.suppress(OSError):  # a log file on a full disk
            click.echo(visible(reason), err=True)
        return 1

    def _say(self, message: dict[str, str]) -> None:
        assert self._fd is not None
        with contextlib.suppress(BrokenPipeError), open(self._fd, "wb") as pipe:  # it may have been interrupted
            pipe.write(json.dumps(message).encode())
        self._fd = None


def started_text(info: InstanceInfo) -> str:
    lines = [f"  {name:<10}  {place}" for name, place in info.places().items()]
    more = [*info.not_loaded, *([info.hint] if info.hint else [])]
    return visible("\n".join([f"Model server started (pid {info.pid}).", *lines, *(f"  {line}" for line in more)]))
