"""`msx-serve upgrade`, `msx-serve restart`: another server in the place of the one that runs, with its workers."""

import sys
from pathlib import Path
from typing import Any

import click

from msx_frontend.assembly.upgrade_orders import NAME, order
from msx_frontend.cli.subcommands.selection import selected, selects_server
from msx_frontend.visible import visible

LIMIT = 7200.0
"""Seconds to wait: the server before has `upgrade_timeout` (an hour at most), and there is a start."""
WITHOUT = (
    "this server has no supervisor that could put another one in its place: set supervisor=true, and start it anew. "
    "(`msx-serve PATH` has none.)"
)
OF_SCRIPT = "this server belongs to its start script, {}, and ends with it: run that anew."
renews_workers = click.option(
    "--workers", is_flag=True, help="Replace the workers, too, each when another one serves in its place."
)


@click.command()
@click.option(
    "--python",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Interpreter with the new release, such as /opt/msx-0.3/bin/python. Default: the one that runs.",
)
@renews_workers
@selects_server
def upgrade(python: Path | None, workers: bool, **flags: Any) -> None:
    """Start the server anew, with its configuration as it is now; workers and connections stay.

    Needs supervisor=true. 1 when the new server does not come up: then nothing has changed.
    """
    _follow(str(python.absolute()) if python else None, workers, flags)


@click.command()
@renews_workers
@selects_server
def restart(workers: bool, **flags: Any) -> None:
    """Start the same program anew, with its configuration as it is now: `msx-serve upgrade` without --python."""
    _follow(None, workers, flags)


def _follow(python: str | None, workers: bool, flags: dict[str, Any]) -> None:
    info = selected(**flags)
    try:
        answer = order(info.state_folder / NAME, LIMIT, python=python, workers=workers)
    except (FileNotFoundError, ConnectionRefusedError):
        sys.exit(_failed(OF_SCRIPT.format(info.script) if info.script else WITHOUT))
    except (OSError, EOFError) as error:
        sys.exit(_failed(f"the server has not answered: {error}"))
    if "refused" in answer:
        sys.exit(_failed(answer["refused"]))
    follows = " Its workers are replaced one after the other." if workers else ""
    click.echo(f"The new frontend (pid {answer['pid']}) has taken over.{follows}")
    if notice := answer.get("notice"):
        click.echo(visible(notice), err=True)


def _failed(reason: str) -> int:
    click.echo(f"Not upgraded: {reason}", err=True)
    return 1
