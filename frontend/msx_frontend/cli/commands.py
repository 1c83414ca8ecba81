"""The commands of `msx-serve`. Each returns the exit code."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import psutil

from msx_core.start_errors import StartError
from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.instance import all_running, running_in
from msx_frontend.assembly.pid_file import PidFile, temporary_folder
from msx_frontend.cli.options import Options
from msx_frontend.cli.process_env import open_streams
from msx_frontend.cli.waiting_command import WaitingCommand
from msx_frontend.config.state_folder import DATABASE, ENV, state_folder, usual_folders
from msx_frontend.supervision.frontend_command import READY_FD
from msx_frontend.supervision.frontend_process import CONFIG_FD

LEAST_STOP_LIMIT, BEYOND_DRAIN = 90.0, 60.0
"""Seconds."""

NOT_RUNNING = "MSX is not currently running."


class SeveralServersError(Exception):
    """Several servers run, and the message asks the user to select one."""


def start(options: Options) -> int:
    from msx_frontend.cli.launch import run_in_background, run_in_foreground

    open_streams()
    if missing := next(_missing(options), None):
        return WaitingCommand(options.env.get(READY_FD)).failed(missing)
    return run_in_foreground(options) if options.foreground else run_in_background(options)


def _missing(options: Options) -> Iterator[str]:
    """A message for each missing file or folder of a flag or variable, in TorchServe's words."""
    temp = options.env.get("TEMP")
    if temp and not os.path.isdir(temp):
        yield f"Invalid temp directory: {temp}, please check TEMP environment variable."
    read = options.env.get("TS_CONFIG_FILE") or options.ts_config
    ts_config = None if CONFIG_FD in options.env else read  # a crash is followed with what the file was
    for flag, file in (("--log-config", options.log_config), ("--ts-config", ts_config)):
        if file and not os.path.isfile(file):
            yield f"{flag} file not found: {file}"
    for flag, folder in (("--model-store", options.model_store), ("--workflow-store", options.workflow_store)):
        if folder and not folder.is_dir():
            yield f"{flag} directory not found: {folder}"


def stop(options: Options) -> int:
    """Returns 0 when no server runs: scripts for TorchServe call --stop before --start."""
    try:
        info = the_one(options)
    except SeveralServersError:
        return 1
    if info is None:
        click.echo(NOT_RUNNING)
        return 0
    process = psutil.Process(info.pid)
    process.send_signal(signal.SIGTERM)
    if not _ended(process, limit := stop_limit(info)):
        click.echo(f"MSX (pid {info.pid}) has not stopped within {limit:g} s; it is still finishing work.", err=True)
        return 1
    click.echo("MSX has stopped.")
    return 0


def stop_limit(info: InstanceInfo) -> float:
    """Seconds that `--stop` waits: longer than the server's own limits."""
    return max(LEAST_STOP_LIMIT, info.drain_timeout + BEYOND_DRAIN)


def _ended(process: psutil.Process, limit: float) -> bool:
    """A zombie counts as ended: in a container it may never be reaped."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def status(options: Options) -> int:
    """Returns 1 when no server runs, a server does not answer, or a model has failed; scripts rely on that."""
    from msx_frontend.cli.status import show

    infos = running(options)
    if not infos:
        click.echo(NOT_RUNNING, err=True)
        return 1
    healthy = [show(info) for info in infos]
    return 0 if all(healthy) else 1


def backup(options: Options) -> int:
    """Copy the state of the running server that the flags select; else of the server that they would start."""
    from msx_frontend.models.state.backup import back_up

    assert options.backup is not None
    try:
        state = _state_file(options)
        made = back_up(state, options.backup)
    except SeveralServersError:
        return 1
    except StartError as error:
        click.echo(str(error), err=True)
        return 1
    held = f"{_counted(made.versions, 'version')} of models, {_counted(made.workflows, 'workflow')}"
    click.echo(f"{made.path}: {held} (schema {made.schema}), of {state}. The archives that it names are not in it.")
    return 0


def _state_file(options: Options) -> Path:
    from msx_frontend.config.load import load_server_config

    if (info := the_one(options)) is not None:
        return info.state_folder / DATABASE
    return state_folder(load_server_config(options.overrides(), options.ts_config, options.env)[0]).database


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def running(options: Options) -> list[InstanceInfo]:
    """The running servers that the flags select, by state folder or model store; else all."""
    if options.state_dir:
        return running_in([options.state_dir.resolve()])
    told = options.env.get(ENV)
    folders = [*usual_folders(options.model_store or Path.cwd()), *([Path(told).resolve()] if told else [])]
    infos = {info.pid: info for info in [*running_in(folders), *all_running()]}.values()
    store = options.model_store and str(options.model_store.resolve())
    return [info for info in infos if store in (None, info.model_store)]


def the_one(options: Options) -> InstanceInfo | None:
    """The only selected server, or the one of the current folder or MSX_STATE_DIR, or of the folder of temporary files
    that a variable names; None when no server runs."""
    several = running(options)
    here, told = str(Path.cwd()), options.env.get(ENV)
    near = [
        info for info in several if here == info.model_store or (told and Path(told).resolve() == info.state_folder)
    ]
    found = near if len(near) == 1 and options.model_store is None else several
    if len(found) > 1 and options.model_store is None and options.state_dir is None:
        found = _of_pid_file(found, options.env)
    if len(found) > 1:
        click.echo(_which(found), err=True)
        raise SeveralServersError
    return found[0] if found else None


def _of_pid_file(found: list[InstanceInfo], env: Mapping[str, str]) -> list[InstanceInfo]:
    """The one whose pid file stands in the folder that a variable names, and that shares it with no other; else all."""
    folder = temporary_folder(env)
    pid = PidFile(env).server() if folder else None
    own = [info for info in found if info.pid == pid]
    others = [info for info in found if info.temporary_folder == folder]  # the file is that of the first of these
    return own if own and len(others) < 2 else found


def _which(running: list[InstanceInfo]) -> str:
    stores = [info.model_store for info in running]
    if len(set(stores)) == len(stores):
        return f"Several servers are running; select one by --model-store: {', '.join(stores)}"
    return f"Several servers are running; select one by --state-dir: {', '.join(str(i.state_folder) for i in running)}"
