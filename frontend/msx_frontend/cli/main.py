"""`msx-serve`: torchserve's flags. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from msx_frontend import __version__

PATH = click.Path(path_type=Path)
_ACTION = "msx_frontend.action"

T = TypeVar("T")


def _action(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A flag that excludes the other actions, as in torchserve."""
    return click.option(*names, is_flag=True, expose_value=False, callback=_chosen, help=help)


def _chosen(ctx: click.Context, option: click.Parameter, given: T) -> T:
    if given and (first := ctx.meta.setdefault(_ACTION, option.name)) != option.name:
        raise click.UsageError(f"--{first} and --{option.name} exclude each other: give one of them.", ctx)
    return given


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@_action("--start", help="Start the server (the default).")
@_action("--stop", help="Stop the running server.")
@_action("--status", help="Show the running servers and their models.")
@click.option(
    "--backup",
    type=PATH,
    metavar="DIR",
    callback=_chosen,
    help="Copy the state into DIR, whether the server runs or not.",
)
@_action("-v", "--version", help="Show the version.")
@click.option(
    "--models", multiple=True, metavar="MODELS", help="file.mar, name=file.mar, a path, `all` or `none`; several."
)
@click.option("--model-store", type=PATH, help="Folder with the archives. Default: here.")
@click.option(
    "--state-dir",
    type=PATH,
    help="Folder that the server writes: state, logs, caches. Default: .msx in the model store.",
)
@click.option("--workflow-store", type=PATH, help="Folder with the workflow archives. Default: the model store.")
@click.option(
    "--plugins-path", "--ppath", metavar="FOLDERS", help="Folders with the packages of plugins, comma-separated."
)
@click.option("--ts-config", type=PATH, help="A config.properties file.")
@click.option("--wait", is_flag=True, help="With --start: return when every model is ready, or with 1 and why not.")
@click.option(
    "--wait-timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest time that --wait waits.",
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground and log to the terminal.")
@click.option("--ncs", "--no-config-snapshots", "ncs", is_flag=True, help="Neither restore nor keep the state.")
@click.option("--log-config", type=PATH, help="A logging configuration (YAML, JSON or ini).")
@click.option("--cpp-log-config", type=PATH, help="Accepted without effect: there are no C++ workers.")
@click.option("--enable-model-api", is_flag=True, default=None, help="Allow registering and unregistering models.")
@click.option("--disable-token-auth", "--dt", is_flag=True, default=None, help="Take requests without a token.")
@click.argument("more_models", nargs=-1, metavar="[MODELS]...")
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> None:
    """Serve MindSpore models packed by msx-archiver.

    Without --foreground, `msx-serve` returns as soon as the server answers; with --wait, when its models do.
    `msx-serve examples DIR` copies the examples, the ready-made configurations and the docs into a folder.
    """
    action = ctx.meta.get(_ACTION, "start")
    if action == "version":
        click.echo(f"MSX Version is {__version__}")
        return
    from msx_frontend.cli import commands
    from msx_frontend.cli.options import Options

    options.pop("cpp_log_config")
    if options["more_models"][:1] == ("examples",) and not options["models"]:
        sys.exit(_examples(ctx, options["more_models"][1:]))
    options["models"] = (*options.pop("models"), *options.pop("more_models"))
    sys.exit(getattr(commands, action)(Options(**options, argv=sys.argv[1:], env=os.environ)))


def _examples(ctx: click.Context, folders: tuple[str, ...]) -> int:
    from msx_frontend.cli.examples import copy_examples

    if _ACTION in ctx.meta or len(folders) != 1:
        raise click.UsageError("`msx-serve examples DIR` copies them into one folder, and does nothing else.", ctx)
    return copy_examples(Path(folders[0]))


if __name__ == "__main__":
    main()
