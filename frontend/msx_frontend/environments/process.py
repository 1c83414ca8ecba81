"""Run pip in a process: read its lines as they come, wait for its end, and end it when the caller is cancelled."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_MOST_LINES = 40
_LONGEST = 1 << 20


class CommandFailed(Exception):
    """`lines` are the last ones that the command wrote."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(f"exit code {code}")
        self.code, self.lines = code, list(lines)


async def run_command(
    command: Sequence[str], folder: Path, env: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Raises CommandFailed, or OSError. When it is cancelled, the command and its child processes are ended first."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env=dict(env),
        start_new_session=True,
        limit=_LONGEST,
    )
    try:
        lines = await _read(process, tell)
        code = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code != 0:
        raise CommandFailed(code, lines)


async def _read(process: asyncio.subprocess.Process, tell: Callable[[str], None]) -> deque[str]:
    assert process.stdout is not None
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    async for data in process.stdout:
        if line := data.decode("utf-8", "replace").rstrip():
            lines.append(line)
            tell(line)
    return lines
