"""`msx-serve jobs`: requests that were deferred, of all keys, by the management key."""

from __future__ import annotations

import json
import time
from itertools import islice
from typing import Any

import click

from msx_frontend.cli.status import columns
from msx_frontend.cli.subcommands.answers import PrintedAnswer
from msx_frontend.cli.subcommands.asking import MANAGEMENT_URL, client_of
from msx_frontend.cli.subcommands.selection import selects_server
from msx_frontend.visible import visible

STATES = ("queued", "running", "done", "cancelled")
HEAD = ("id", "state", "status", "age", "key", "path")


@click.group(invoke_without_command=True)
@click.pass_context
def jobs(context: click.Context) -> None:
    """Requests that are answered later (`Prefer: respond-async`), of all keys: list, show, result, cancel."""
    if context.invoked_subcommand is None:
        context.invoke(list_jobs, state=None, limit=100, as_json=False, url=None, model_store=None, state_dir=None)


@jobs.command(name="list")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("-n", "--limit", type=click.IntRange(1), default=100, show_default=True, help="The newest so many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a job.")
@MANAGEMENT_URL
@selects_server
def list_jobs(state: str | None, limit: int, as_json: bool, url: str | None, **flags: Any) -> None:
    """The jobs, the newest first."""
    with client_of(url, management=True, **flags) as client:
        found = list(islice(client.all_jobs.list(state=state or ""), limit))
    if as_json:
        for one in found:
            click.echo(json.dumps(one))
    elif found:
        columns([HEAD, *map(_row, found)])
    else:
        click.echo("There are no jobs." if state is None else f"There are no jobs that are {state}.")


@jobs.command()
@click.argument("id")
@MANAGEMENT_URL
@selects_server
def show(id: str, url: str | None, **flags: Any) -> None:
    """How the job ID stands, as JSON."""
    with client_of(url, management=True, **flags) as client:
        click.echo(json.dumps(client.all_jobs.get(id).status(), indent=2))


@jobs.command()
@click.argument("id")
@click.option("--wait", type=click.FloatRange(0), default=0.0, help="Seconds to wait for its end.")
@MANAGEMENT_URL
@selects_server
def result(id: str, wait: float, url: str | None, **flags: Any) -> None:
    """Print the reply of the job ID, as it came."""
    answer = PrintedAnswer()
    with client_of(url, management=True, **flags) as client:
        job = client.all_jobs.get(id)
        if wait:
            job.wait(wait)
        answer.data(job.content())
    answer.end()


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@MANAGEMENT_URL
@selects_server
def cancel(ids: tuple[str, ...], url: str | None, **flags: Any) -> None:
    """Cancel each job ID, or forget one that has ended, together with its reply."""
    with client_of(url, management=True, **flags) as client:
        for id in ids:
            click.echo(f"{visible(id)}: {client.all_jobs.get(id).cancel()}")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        job["id"],
        job["state"],
        str(job["status"] or "-"),
        age(time.time() - job["created"]),
        visible(job.get("key") or "-"),
        visible(job["path"]),
    )


def age(seconds: float) -> str:
    """As 42s, 3m, 5h or 2d."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"
