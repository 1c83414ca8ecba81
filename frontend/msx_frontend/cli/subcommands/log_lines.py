"""`msx-serve logs`: the log of a running server, as readable lines."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from msx_frontend.cli.subcommands.selection import selected, selects_server
from msx_frontend.logs.shown import ACCESS, entry_of, shown
from msx_frontend.visible import visible

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
EVERY = 0.2
"""Seconds between two looks of `-f`."""


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.option("-n", "--lines", default=100, show_default=True, type=click.IntRange(0, 100_000), help="The last ones.")
@click.option("--level", default="INFO", show_default=True, type=click.Choice(LEVELS, case_sensitive=False))
@click.option("--model", help="Only lines of this model.")
@click.option("--access/--no-access", default=True, help="With the lines of the access log.")
@selects_server
def logs(follow: bool, lines: int, level: str, model: str | None, access: bool, **flags: Any) -> None:
    """The log of a running server, coloured on a terminal. One in the foreground without a log file has none."""
    info = selected(**flags)
    files = [Path(name) for name in info.logs if Path(name).is_file()]
    if not files:
        raise click.ClickException(
            f"The server (pid {info.pid}) writes its log to its terminal, not to a file: look there, or start it "
            f"without --foreground."
        )
    wanted = LineFilter(LEVELS.index(level.upper()), model, access)
    with files[0].open(errors="replace") as file:
        for line in deque(wanted.shown(file), lines):
            click.echo(line)
        if follow:
            _follow(file, files[0], wanted)


class LineFilter:
    """`least`: the place of a level in LEVELS."""

    def __init__(self, least: int, model: str | None, access: bool) -> None:
        self._least, self._model, self._access = least, model, access

    def shown(self, lines: Iterator[str] | TextIO) -> Iterator[str]:
        """The wanted lines as a reader likes them."""
        for line in lines:
            if (text := self._text(line.rstrip("\n"))) is not None:
                yield text

    def _text(self, line: str) -> str | None:
        """None for a line that is not wanted. What is not of the log (a traceback, a library's words) always is."""
        entry = entry_of(line)
        if entry is None:
            return visible(line) if self._model is None else None
        return shown(entry) if self._wants(entry) else None

    def _wants(self, entry: dict[str, Any]) -> bool:
        level = str(entry["level"])
        if level in LEVELS and LEVELS.index(level) < self._least:
            return False
        if entry.get("logger") == ACCESS and not self._access:
            return False
        return self._model is None or self._model in (entry.get("model"), *str(entry.get("path", "")).split("/"))


def _follow(file: TextIO, path: Path, wanted: LineFilter) -> None:
    """Also when the file is rotated: then the new one is read from its beginning."""
    try:
        while True:
            for line in wanted.shown(file):
                click.echo(line)
            time.sleep(EVERY)
            if path.exists() and os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
                file.close()
                file = path.open(errors="replace")
    except KeyboardInterrupt:
        return
    finally:
        file.close()
