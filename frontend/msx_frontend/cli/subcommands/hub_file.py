"""A small file of a model, as its `config.json`, from its hub."""

import subprocess
import sys

import click

from msx_core.module_command import module_command
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.shown_url import shown_url

LIMIT = 60.0
"""Seconds."""
_COMMAND = module_command(sys.executable, "msx_frontend.archives.hub.one_file")


def hub_file(url: str, name: str, most: int) -> bytes:
    """A file of at most `most` bytes, read by a process of its own: the hubs' libraries block, and their listings may
    be hostile. Raises ClickException."""
    try:
        HubUrl.parse(url)
        done = subprocess.run([*_COMMAND, url, name, str(most)], capture_output=True, timeout=LIMIT)
    except ValueError as error:
        raise click.ClickException(f"{error}.") from None
    except subprocess.TimeoutExpired:
        raise click.ClickException(f"{shown_url(url)}: its hub has not sent {name} within {LIMIT:g} s.") from None
    if done.returncode:
        raise click.ClickException(
            f"{shown_url(url)}: {last_line(done.stderr) or 'the process that asks its hub has ended'}."
        )
    return done.stdout


def last_line(stderr: bytes) -> str:
    """Last line that a process has written, with the reason of its end."""
    return stderr.decode(errors="replace").strip().rpartition("\n")[2]
