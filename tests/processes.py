"""Looks at processes that may end at any moment: of one that has ended there is nothing to tell, and nothing fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import psutil

P = TypeVar("P", psutil.Process, int)


def is_alive(process: psutil.Process | int) -> bool:
    """Whether it has not ended, reaped or not. A number is that of whoever has it now."""
    try:
        one = _process(process)
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended between the two
        return False


def alive(processes: Iterable[P]) -> list[P]:
    """Return those of them that have not ended."""
    return [one for one in processes if is_alive(one)]


def unreaped(pids: Iterable[int]) -> list[int]:
    """Return those that the system still knows: a process that has ended is left until its parent looks."""
    return [pid for pid in pids if psutil.pid_exists(pid)]


def command_of(process: psutil.Process | int) -> str:
    """Its words with spaces between them; "" of one that has ended, or that belongs to somebody else."""
    try:
        return " ".join(_process(process).cmdline())
    except psutil.Error:
        return ""


def name_of(process: psutil.Process | int) -> str:
    """Short name that the system shows of it; "" of one that has ended."""
    try:
        return str(_process(process).name())
    except psutil.NoSuchProcess:
        return ""


def environment_of(process: psutil.Process | int) -> dict[str, str]:
    """Its variables; {} of one that has ended, or that belongs to somebody else."""
    try:
        return dict(_process(process).environ())
    except psutil.Error:
        return {}


def children_of(process: psutil.Process | int, words: str = "", *, recursive: bool = False) -> list[psutil.Process]:
    """Return those that live, with these words in their commands; none of a process that has ended."""
    try:
        found = _process(process).children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []
    return [one for one in alive(found) if not words or words in command_of(one)]


def ports_of(process: psutil.Process | int) -> set[int]:
    """Ports on which it listens; none of one that has ended."""
    try:
        found = _process(process).net_connections("tcp")
    except psutil.NoSuchProcess:
        return set()
    return {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}


def _process(process: psutil.Process | int) -> psutil.Process:
    return process if isinstance(process, psutil.Process) else psutil.Process(process)
