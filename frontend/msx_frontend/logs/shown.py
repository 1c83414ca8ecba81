"""Entries of the log as people read them: on the terminal of a server in the foreground, and by `msx-serve logs`."""

import json
from datetime import datetime
from typing import Any

import click

from msx_frontend.visible import visible

ACCESS = "msx.access"
COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
_PLACE = ("model", "version", "worker", "rank")


def entry_of(line: str) -> dict[str, Any] | None:
    """The entry of a JSON line; None for a line that is not of the log, such as a traceback or a library's words."""
    try:
        entry = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "level" in entry else None


def shown(entry: dict[str, Any]) -> str:
    """Line in colours, without control characters of others."""
    return _access(entry) if entry.get("logger") == ACCESS else _message(entry)


def shown_lines(lines: str) -> str:
    """The same for whole JSON lines, each with its line feed."""
    entries = ((line, entry_of(line)) for line in lines.split("\n")[:-1])
    return "".join(f"{visible(line) if entry is None else shown(entry)}\n" for line, entry in entries)


def _message(entry: dict[str, Any]) -> str:
    level = str(entry["level"])
    place = " ".join(str(entry[name]) for name in _PLACE if name in entry)
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
