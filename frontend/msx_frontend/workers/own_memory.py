"""How much memory a process has that other processes do not share."""

from collections.abc import Iterator
from pathlib import Path

import psutil

MOST_DESCENDANTS = 1000


def own_memory(pid: int) -> int:
    """Resident bytes without the pages of files, which the kernel shares between processes; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            sizes = dict(line.split(":", 1) for line in status if line.startswith("Rss"))
        return 1024 * sum(int(sizes[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    except (OSError, KeyError, ValueError):
        return _resident(pid)


def own_memory_of_all(pid: int) -> int:
    """The same, plus the private pages of the processes that it has started: a fork shares pages with its parent."""
    return own_memory(pid) + sum(_private(child) for child in _descendants(pid))


def _descendants(pid: int) -> Iterator[int]:
    """Descendants, MOST_DESCENDANTS at most; none where the kernel does not list them."""
    found = [pid]
    for parent in found:
        found += _children(parent)[: MOST_DESCENDANTS + 1 - len(found)]
        if parent != pid:
            yield parent


def _children(pid: int) -> list[int]:
    """Child processes of all its threads: each has a list of its own."""
    children = list[int]()
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        pass
    return children


def _private(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as sizes:
            return 1024 * sum(int(line.split()[1]) for line in sizes if line.startswith("Private_Dirty:"))
    except (OSError, IndexError, ValueError):  # it has ended, or is another user's
        return 0


def _resident(pid: int) -> int:
    """All resident bytes, where the kernel does not tell shared pages apart."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
