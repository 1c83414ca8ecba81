"""Run the server in this process, or start it in the background and wait until it answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from msx_core.module_command import module_command
from msx_core.start_errors import StartError
from msx_frontend.cli.console import copied_to_console, handed_on
from msx_frontend.cli.first_process import become_parent, is_first_process
from msx_frontend.cli.process_env import prepare_process
from msx_frontend.cli.waiting_command import WaitingCommand
from msx_frontend.supervision.client import SupervisorError
from msx_frontend.supervision.fork import FORK_FIRST, fork_frontend
from msx_frontend.supervision.frontend_command import READY_FD
from msx_frontend.supervision.frontend_process import COMMAND, CONFIG_FD, FRONTEND_FD
from msx_frontend.supervision.needed import lacks
from msx_frontend.supervision.saying import LOG_FILE
from msx_frontend.visible import visible

if TYPE_CHECKING:
    from msx_frontend.assembly.server import Server
    from msx_frontend.cli.options import Options
    from msx_frontend.config import ServerConfig
    from msx_frontend.config.load import GivenSettings

Beside: TypeAlias = "Callable[[Server], Coroutine[None, None, None]]"

_ANSWERS_LATER = 5.0
"""Seconds to wait longer than the server, so that its own report, which names the models, comes first."""


def run_in_foreground(options: Options, beside: Beside | None = None) -> int:
    """`beside` runs when the server has started, and is cancelled at its end; it says itself what the user reads."""
    prepare_process()
    import uvloop

    from msx_frontend.config.state_folder import state_folder
    from msx_frontend.config.surroundings import settle_logs

    parent = WaitingCommand(options.env.get(READY_FD))
    if options.wait and not parent.waits and FRONTEND_FD not in os.environ:  # which follows one that a command awaited
        return parent.failed(
            "--wait is for a server in the background, which --foreground and the first process of a container are "
            "not: ask /readyz instead."
        )
    try:
        settings = _load_settings(options)
        if beside is None and FRONTEND_FD not in os.environ:
            settings = _below_parent(settings, options, parent)
        if sys.stderr.isatty():  # where the log may go elsewhere
            _tell(settings)
        state = state_folder(settings.config)
        state.make()
        settle_logs(os.environ, state)
        with copied_to_console(options.env):
            uvloop.run(_serve(settings, options, parent, beside))
    except (StartError, OSError) as error:
        return parent.failed(_why(error, options))
    return 0


def _why(error: BaseException | None, options: Options) -> str:
    return f"The server cannot start: {_named(error, options)}" if isinstance(error, OSError) else str(error)


def _below_parent(settings: GivenSettings, options: Options, command: WaitingCommand) -> GivenSettings:
    """Go on as the child of a supervisor, which this process becomes. Process 1 becomes another small parent where
    there is to be none. Raises StartError, OSError."""
    lack = lacks() if settings.config.supervisor else ""
    if settings.config.supervisor and not lack:
        foreground = [] if "--foreground" in options.argv else ["--foreground"]
        fork_frontend([*foreground, *options.argv], given=command.pipe)
    elif lack and "supervisor" in settings.given:
        raise SupervisorError(f"supervisor=true cannot be: this system {lack}. Set it to false.")
    elif is_first_process():
        become_parent(options.argv)
    elif lack:
        notice = f"there is no supervisor, because this system {lack}: workers end with a server that crashes"
        return settings._replace(notices=[*settings.notices, notice])
    return settings


def _named(error: OSError, options: Options) -> str:
    from msx_archiver.room import is_full, why

    store = (options.model_store or Path()).resolve()
    unknown = f"a file in {store}, or of its log" if is_full(error) else "no file named"
    return f"{why(error, Path(error.filename or store))}: {error.filename or unknown}"


async def _serve(settings: GivenSettings, options: Options, parent: WaitingCommand, beside: Beside | None) -> None:
    import asyncio
    import logging

    from msx_frontend.assembly.lifecycle import Lifecycle
    from msx_frontend.assembly.server import StartedTooFar, start_server
    from msx_frontend.config.surroundings import log_location
    from msx_frontend.logs.background_log import BackgroundLog
    from msx_frontend.logs.file_mode import file_mode
    from msx_frontend.logs.output import set_up_logging

    over = time.monotonic() + options.wait_timeout
    config = settings.config
    upgrade_limit = config.upgrade_timeout if FRONTEND_FD in os.environ else None
    mode = file_mode(config.log_file_mode)
    output = set_up_logging(config.log_config, sys.stdout, folder=log_location(os.environ), file_mode=mode)
    for notice in settings.notices:
        logging.getLogger("msx.config").warning("%s", notice)

    async def start(parts: AsyncExitStack) -> Server:
        try:
            return await start_server(settings, output, parts)
        except StartedTooFar as error:
            if not isinstance(error.__cause__, StartError | OSError):
                logging.getLogger("msx.server").error("the start has failed", exc_info=error.__cause__)
            code = parent.failed(_why(error.__cause__, options))
            logging.shutdown()
            os._exit(code)

    background = [BackgroundLog(Path(path), file_mode=mode) for path in [options.env.get(LOG_FILE)] if path]
    tasks = [asyncio.create_task(one.watch()) for one in background]

    async def tell_when_ready(server: Server) -> None:
        left = over - time.monotonic()
        parent.started(server.info, [*server.info.not_loaded] or await server.why_not_ready(left))

    def started(server: Server) -> None:
        if beside is not None:
            tasks.append(asyncio.create_task(beside(server)))
        elif options.wait:
            tasks.append(asyncio.create_task(tell_when_ready(server)))
        else:
            parent.started(server.info)

    try:
        await Lifecycle(start, config.drain_timeout, started, upgrade_limit).run()
    finally:
        for task in tasks:
            task.cancel()


def run_in_background(options: Options) -> int:
    """Start the same command again, detached, with its output in a log file."""
    try:
        settings = _load_settings(options)
        log_file = _log_file(settings.config)
    except StartError as error:
        click.echo(str(error), err=True)
        return 1
    _tell(settings)
    first = FORK_FIRST if settings.config.supervisor and not lacks() else ""
    read, write = os.pipe()
    env = {**options.env, READY_FD: str(write), LOG_FILE: str(log_file)}
    with log_file.open("ab") as log, handed_on(settings.config.console) as (console, told):
        child = subprocess.Popen(
            [*module_command(sys.executable, COMMAND, first=first), *options.argv, "--foreground"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**env, **told},
            pass_fds=[write, *console],
            start_new_session=True,
        )
    os.close(write)
    with os.fdopen(read) as pipe:
        if options.wait and not select.select([pipe], [], [], options.wait_timeout + _ANSWERS_LATER)[0]:
            click.echo(_too_late(child.pid, options.wait_timeout, log_file), err=True)
            return 1
        said = pipe.read()
    return _report(said, child, log_file)


def _too_late(pid: int, limit: float, log_file: Path) -> str:
    return f"The server (pid {pid}) does not answer within --wait-timeout ({limit:g} s); it goes on: see {log_file}."


def _report(said: str, child: subprocess.Popen[bytes], log_file: Path) -> int:
    message = json.loads(said) if said else {}
    if "text" in message:
        click.echo(message["text"])
        if failures := message.get("error"):
            log = message.get("log") or log_file
            click.echo(f"{visible(failures)}\nThe server goes on: see {log}; msx-serve --stop ends it.", err=True)
        return 1 if failures else 0
    code = child.wait()
    reason = message.get("error") or f"The server ended with exit code {code} while starting; see {log_file}."
    click.echo(visible(reason), err=True)
    return 1


def _load_settings(options: Options) -> GivenSettings:
    from msx_frontend.config.last import last_settings
    from msx_frontend.config.load import load_settings

    if (fd := os.environ.pop(CONFIG_FD, None)) is not None:
        return last_settings(int(fd), options.overrides(), options.ts_config, options.env)
    return load_settings(options.overrides(), options.ts_config, options.env)


def _tell(settings: GivenSettings) -> None:
    """Print notices to the terminal: the log has them, too, but the user may not look there for a while."""
    for notice in settings.notices:
        click.echo(visible(notice), err=True)


def _log_file(config: ServerConfig) -> Path:
    from msx_archiver.room import why
    from msx_frontend.config.state_folder import StateFolderError, state_folder
    from msx_frontend.logs.file_mode import file_mode, open_log

    state = state_folder(config)
    state.make()
    path = state.logs / "msx.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(open_log(path, os.O_WRONLY | os.O_CREAT, file_mode(config.log_file_mode)))
    except OSError as error:
        raise StateFolderError(f"The state folder {state.path} cannot be written: {why(error, path)}: {path}") from None
    return path
