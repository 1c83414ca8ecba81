"""`msx-serve logs`: the log of a running server, as readable lines."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import click

from msx_frontend.cli.subcommands.selection import selected, selects_server
from msx_frontend.visible import visible

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
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
        try:
            entry = json.loads(line) if line.startswith("{") else None
        except ValueError:
            entry = None
        if not isinstance(entry, dict) or "level" not in entry:
            return visible(line) if self._model is None else None
        is_access = entry.get("logger") == "msx.access"
        if not self._wants(entry, is_access):
            return None
        return _access(entry) if is_access else _readable(entry)

    def _wants(self, entry: dict[str, Any], is_access: bool) -> bool:
        level = str(entry["level"])
        if level in LEVELS and LEVELS.index(level) < self._least:
            return False
        if is_access and not self._access:
            return False
        return self._model is None or self._model in (entry.get("model"), *str(entry.get("path", "")).split("/"))


def _readable(entry: dict[str, Any]) -> str:
    level = str(entry["level"])
    place = " ".join(str(entry[name]) for name in ("model", "version", "worker", "rank") if name in entry)
    text = f"{entry.get('logger', '')}{f' [{place}]' if place else ''}: {entry.get('message', '')}"
    traceback = f"\n{entry['traceback']}" if entry.get("traceback") else ""
    return f"{_clock(entry)} {click.style(f'{level:<8}', COLOURS.get(level))} {visible(text + traceback)}"


def _access(entry: dict[str, Any]) -> str:
    status = int(entry.get("status", 0))
    colour = "red" if status >= 500 else "yellow" if status >= 400 else "green"
    said = f"{entry.get('method', '')} {entry.get('path', '')} {entry.get('ms', '')} ms {entry.get('client', '')}"
    return f"{_clock(entry)} {click.style(str(status), colour)}      {visible(said)}"


def _clock(entry: dict[str, Any]) -> str:
    return datetime.fromtimestamp(float(entry.get("time", 0))).strftime("%H:%M:%S.%f")[:-3]


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
