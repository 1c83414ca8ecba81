"""Starts the process that fetches a model, and follows its reports."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msx_core.module_command import module_command
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.shown_url import without_secrets

MOST_LINE = 1 << 16
_PROCESS = "msx_frontend.archives.hub.process"
_QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONWARNINGS": "ignore"}
_NOT_ITS = ("MSX_API_KEY",)
_LAST = 4096
LEAVES = 2.0
"""Seconds that the process has to end by itself once it has answered."""


class NotFetchedError(Exception):
    """The reason in words."""


async def fetch(
    url: str,
    root: Path,
    most: int,
    limit: float,
    progress: Callable[[int, int], None],
    env: Mapping[str, str],
    *,
    allowed: Sequence[str],
    offline: bool = False,
) -> tuple[str, str]:
    """The content's id below `root`, and the commit, or "". `limit`: seconds. Raises NotFetchedError.

    `allowed`: patterns of URLs to which the hub may redirect; `offline`: of what huggingface_hub has on this machine.

    The process is ended when this is cancelled; what has come stays for the next one.
    """
    process = await asyncio.create_subprocess_exec(
        *module_command(sys.executable, _PROCESS),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**{name: value for name, value in env.items() if name not in _NOT_ITS}, **_QUIET},
        cwd="/",
        limit=MOST_LINE,
    )
    try:
        assert process.stdin is not None
        order = {"url": url, "root": str(root), "most": most, "allowed": list(allowed), "offline": offline}
        process.stdin.write(json.dumps(order).encode() + b"\n")
        answer = await asyncio.wait_for(_followed(process, progress), limit)
        await _left(process)
    except asyncio.TimeoutError:
        raise NotFetchedError(
            f"it took longer than download_timeout, {limit:g} s; what has come stays, and the next attempt goes on "
            "from there"
        ) from None
    finally:
        await asyncio.shield(_ended(process))
    if "error" in answer:
        raise NotFetchedError(str(answer["error"]))
    return str(answer["id"]), str(answer["revision"])


async def _followed(process: asyncio.subprocess.Process, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """The answer: an `id`, or an `error`. Raises NotFetchedError without any."""
    assert process.stdout is not None
    assert process.stderr is not None
    last = asyncio.ensure_future(_last_line(process.stderr))
    try:
        while line := await _line(process.stdout):
            report = _read(line)
            if "error" in report or "id" in report:
                return report
            if "size" in report:
                progress(int(report["done"]), int(report["size"]))
        code = await process.wait()
        raise NotFetchedError(f"the process that fetches it ended with code {code}: {await last or 'it said nothing'}")
    finally:
        last.cancel()


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # longer than any report
        return b"?"


def _read(line: bytes) -> dict[str, Any]:
    """A library may write lines of its own."""
    try:
        report = json.loads(line)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


async def _last_line(stream: asyncio.StreamReader) -> str:
    kept = b""
    while data := await stream.read(_LAST):
        kept = (kept + data)[-_LAST:]
    lines = kept.decode(errors="replace").strip().splitlines()
    return without_secrets(lines[-1])[:300] if lines else ""


async def _left(process: asyncio.subprocess.Process) -> None:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), LEAVES)


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def is_offline(url: HubUrl, configured: bool, env: Mapping[str, str] = os.environ) -> str:
    """The setting that forbids to ask a hub, or "". Hugging Face's own variables count for its hub."""
    if configured:
        return "hub_offline"
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if url.scheme == "hf" else ()
    return next((name for name in names if env.get(name, "").upper() in ("1", "ON", "YES", "TRUE")), "")
