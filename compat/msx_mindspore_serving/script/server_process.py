"""The server that a start script of MindSpore Serving starts: it does what the script says, and ends with it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import uvloop

from msx_core.start_errors import StartError
from msx_frontend.embedding import (
    GivenSettings,
    HumanFormatter,
    Lifecycle,
    LogOutput,
    Server,
    TerminalFormatter,
    file_mode,
    load_settings,
    log_location,
    set_mode,
    set_up_logging,
    settle_logs,
    state_folder,
)
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import SCRIPT
from msx_mindspore_serving.script.channel import ScriptChannel
from msx_mindspore_serving.script.start import start_for_script


class ScriptOptions(Protocol):
    """Flags of `msx-serve`, of which the script gives some. `overrides` are settings by the names of their keys."""

    model_store: Path | None
    ts_config: Path | None
    env: Mapping[str, str]

    def overrides(self) -> dict[str, Any]: ...


LARGEST_MESSAGE = 512 << 20
"""Bytes of a reply: what MindSpore Serving's endpoints may be told to allow."""


def run_for_script(options: ScriptOptions, descriptor: int) -> int:
    """Serve what the script says over the socket `descriptor`; return the exit code."""
    channel = ScriptChannel(descriptor)
    try:
        uvloop.run(_serve(options, channel))
    finally:
        channel.close()
        if options.model_store is not None:  # the script's temporary folder, if the script cannot remove it any more
            shutil.rmtree(options.model_store.parent, ignore_errors=True)
    return 0


_DEFAULTS = {
    "max_response_size": LARGEST_MESSAGE,
    "default_response_timeout": 3600,
    "default_startup_timeout": 3600,
}
"""MindSpore Serving waits for its workers without an end."""


async def _serve(options: ScriptOptions, channel: ScriptChannel) -> None:
    try:
        settings = _settings(options)
        output = _logging(settings)
        await _run(settings, options, output, channel)
    except (StartError, OSError) as error:
        await channel.tell("failed", str(error))
        sys.stderr.write(f"{error}\n")


async def _run(settings: GivenSettings, options: ScriptOptions, output: LogOutput, channel: ScriptChannel) -> None:
    reading: list[asyncio.Task[None]] = []
    script = os.environ.pop(SCRIPT, "a script")

    async def start(parts: AsyncExitStack) -> Server:
        server, commands = await start_for_script(settings, output, parts, script, partial(_end, channel, lifecycle))
        parts.callback(lambda: [task.cancel() for task in reading])
        reading.append(asyncio.create_task(channel.serve(commands.obey, ended), name="script-channel"))
        return server

    def ended() -> None:
        if not lifecycle.stopping:
            lifecycle.stop()

    lifecycle = Lifecycle(start, settings.config.drain_timeout, lambda server: None)
    await lifecycle.run()


def _end(channel: ScriptChannel, lifecycle: Lifecycle, reason: str) -> None:
    """End by itself; the script is told why."""

    async def tell_and_stop() -> None:
        await channel.tell("ended", reason)
        lifecycle.stop()

    _ENDING.add(asyncio.ensure_future(tell_and_stop()))


_ENDING: set[asyncio.Future[None]] = set()


def _settings(options: ScriptOptions) -> GivenSettings:
    """Nothing of a script's server outlives it: it keeps no state. Raises StartError."""

    found = load_settings(options.overrides(), options.ts_config, options.env)
    own = {"snapshots": False, "load_models": (), "servables": (), "huggingface": (), "model_snapshot": None}
    own |= {key: value for key, value in _DEFAULTS.items() if key not in found.given}
    return found._replace(config=msgspec.structs.replace(found.config, **own))


def _logging(settings: GivenSettings) -> LogOutput:
    """The log goes to stdout, which is a file; what is wrong goes to the console of the script, too. Raises
    StartError."""

    state = state_folder(settings.config)
    state.make()
    settle_logs(os.environ, state)
    mode = file_mode(settings.config.log_file_mode)
    set_mode([sys.stdout.fileno()], mode)
    output = set_up_logging(settings.config.log_config, sys.stdout, log_location(os.environ), mode)
    for notice in settings.notices:
        logging.getLogger("msx.config").warning("%s", notice)
    if settings.config.log_config is None and not _same_file():
        told = logging.StreamHandler(sys.stderr)
        told.setLevel(logging.WARNING)
        told.setFormatter(TerminalFormatter() if sys.stderr.isatty() else HumanFormatter())
        logging.getLogger().addHandler(told)
    return output


def _same_file() -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(1), os.fstat(2))
    return True
