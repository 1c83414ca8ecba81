"""How much memory a process has for itself."""

from __future__ import annotations

import psutil


def own_memory(pid: int) -> int:
    """Resident bytes without the pages of files, which the kernel shares between processes; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            sizes = dict(line.split(":", 1) for line in status if line.startswith("Rss"))
        return 1024 * sum(int(sizes[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    except (OSError, KeyError, ValueError):
        return _resident(pid)


def _resident(pid: int) -> int:
    """Where the kernel does not tell them apart."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
