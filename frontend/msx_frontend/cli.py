"""`msx-serve`: torchserve's flags. Nothing heavy is imported before it is known what to do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from msx_frontend import __version__

PATH = click.Path(path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--start", "action", flag_value="start", default=True, help="Start the server (the default).")
@click.option("--stop", "action", flag_value="stop", help="Stop the running server.")
@click.option("--status", "action", flag_value="status", help="Show the running servers and their models.")
@click.option("--backup", type=PATH, metavar="DIR", help="Copy the state into DIR, whether the server runs or not.")
@click.option("-v", "--version", "action", flag_value="version", help="Show the version.")
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
def main(action: str, **options: Any) -> None:
    """Serve MindSpore models packed by msx-archiver.

    Without --foreground, `msx-serve` returns as soon as the server answers; with --wait, when its models do.
    """
    if action == "version":
        click.echo(f"MSX Version is {__version__}")
        return
    from msx_frontend import commands

    if options["backup"] is not None:
        if action != "start":
            raise click.UsageError(f"--backup is a command of its own: leave out --{action}.")
        action = "backup"
    options.pop("cpp_log_config")
    options["models"] = (*options.pop("models"), *options.pop("more_models"))
    sys.exit(getattr(commands, action)(commands.Options(**options, argv=sys.argv[1:], env=os.environ)))


if __name__ == "__main__":
    main()
