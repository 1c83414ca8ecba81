"""Which server a word is about: by the same flags as `--stop` and `--status`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.cli.commands import NOT_RUNNING, SeveralServersError, the_one
from msx_frontend.cli.options import Options

F = TypeVar("F", bound=Callable[..., Any])
FLAGS = ("state_dir", "model_store")
"""Options of `msx-serve` itself: one table of options is behind both forms."""


def selects_server(command: F) -> F:
    """Adds the flags that select a running server, as `model_store` and `state_dir`."""
    from msx_frontend.cli.main import main

    for option in (one for one in main.params if one.name in FLAGS):
        command.__dict__.setdefault("__click_params__", []).append(option)
    return command


def options_of(model_store: Path | None, state_dir: Path | None, **more: Any) -> Options:
    return Options(
        models=(),
        model_store=model_store,
        workflow_store=None,
        plugins_path=None,
        ts_config=None,
        foreground=False,
        ncs=False,
        log_config=None,
        enable_model_api=None,
        disable_token_auth=None,
        state_dir=state_dir,
        env=os.environ,
        **more,
    )


def selected(model_store: Path | None, state_dir: Path | None) -> InstanceInfo:
    """Raises click.ClickException (exit code 1) when none runs, or several do."""
    try:
        info = the_one(options_of(model_store, state_dir))
    except SeveralServersError:
        raise SystemExit(1) from None
    if info is None:
        raise click.ClickException(NOT_RUNNING)
    return info
