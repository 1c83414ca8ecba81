"""How much memory this process and its children may have: of their cgroup (v1 or v2), else of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

SELF = Path("/proc/self")

_OCTAL = re.compile(r"\\([0-7]{3})")


class _Files(NamedTuple):
    """What the kernel calls the same thing in its two versions; pages of files are given back when they are needed."""

    limit: str
    usage: str
    of_files: tuple[str, ...]


_V1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_V2 = _Files("memory.max", "memory.current", ("active_file", "inactive_file"))


def memory_limit(process: Path = SELF) -> int:
    """Bytes: the lowest limit of the cgroup and of those above it, at most what the machine has."""
    return min([psutil.virtual_memory().total, *(limit for _, limit, _ in _limits(process))])


def memory_available(process: Path = SELF) -> int:
    """Bytes that could be taken now without swapping, and without reaching a limit of `memory_limit`. Never below 0."""
    free = [limit - _used(folder, files) for folder, limit, files in _limits(process)]
    return max(min([psutil.virtual_memory().available, *free]), 0)


def _limits(process: Path) -> Iterator[tuple[Path, int, _Files]]:
    """The cgroup's folder and those above it that have a limit. A kernel, or a sandbox, without cgroups has none."""
    for mount, folder, files in _folders(process):
        for each in (folder, *folder.parents):
            if (limit := _number(each / files.limit)) is not None:
                yield each, limit, files
            if each == mount:
                break


def _folders(process: Path) -> Iterator[tuple[Path, Path, _Files]]:
    """Where the memory controller is mounted, and the folder of this process in it."""
    paths = _paths(process)
    for line in _lines(process / "mountinfo"):
        fields, _, kind = line.partition(" - ")
        kind, _, options = kind.partition(" ")
        if kind == "cgroup2" and "" in paths:
            path, files = paths[""], _V2
        elif kind == "cgroup" and "memory" in options.split(" ")[-1].split(",") and "memory" in paths:
            path, files = paths["memory"], _V1
        else:
            continue
        root, mount = (_OCTAL.sub(_unescaped, field) for field in fields.split(" ")[3:5])
        yield Path(mount), _below(Path(mount), root, path), files


def _below(mount: Path, root: str, path: str) -> Path:
    """A container sees its own cgroup as the root of the mount, whatever the path says."""
    try:
        return mount / Path(path).relative_to(root)
    except ValueError:
        return mount


def _paths(process: Path) -> dict[str, str]:
    """The cgroup by controller; that of version 2 by ""."""
    found = dict[str, str]()
    for line in _lines(process / "cgroup"):
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _used(folder: Path, files: _Files) -> int:
    stat = {name: value for name, _, value in (line.partition(" ") for line in _lines(folder / "memory.stat"))}
    return (_number(folder / files.usage) or 0) - sum(int(stat.get(name, 0)) for name in files.of_files)


def _number(file: Path) -> int | None:
    """None where there is no such file, and for version 2's `max`."""
    text = "".join(_lines(file))
    return int(text) if text.isdecimal() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
