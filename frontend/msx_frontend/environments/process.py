"""Run pip in a process: read its lines as they come, wait for its end, and end it when the caller is cancelled."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

_MOST_LINES = 40
_LONGEST = 1 << 20


class CommandFailed(Exception):
    """`lines` are the last ones that the command wrote."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(f"exit code {code}")
        self.code, self.lines = code, list(lines)


class TooMuchOutput(Exception):
    """The command has written more than it may."""


async def run_command(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    most: int | None = None,
) -> None:
    """Raises CommandFailed, OSError, or TooMuchOutput beyond `most` bytes. Then, and when it is cancelled, the command
    and its child processes are ended first."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env=dict(env),
        start_new_session=True,
        limit=_LONGEST if most is None else most,
    )
    try:
        lines = await _read(process, tell, most)
        code = await process.wait()
    except TooMuchOutput:
        _kill(process)
        await _drop_rest(process)
        raise
    finally:
        _kill(process)
        await process.wait()
    if code != 0:
        raise CommandFailed(code, lines)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _drop_rest(process: asyncio.subprocess.Process) -> None:
    """Read to the end, without which asyncio does not close the pipe."""
    assert process.stdout is not None
    while await process.stdout.read(_LONGEST):
        pass


async def _read(process: asyncio.subprocess.Process, tell: Callable[[str], None], most: int | None) -> deque[str]:
    assert process.stdout is not None
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    size = 0
    async for data in _whole_lines(process.stdout):
        size += len(data)
        if most is not None and size > most:
            raise TooMuchOutput
        if line := data.decode("utf-8", "replace").rstrip():
            lines.append(line)
            tell(line)
    return lines


async def _whole_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    try:
        async for line in stream:
            yield line
    except ValueError:  # asyncio's word for a line beyond its limit
        raise TooMuchOutput from None
