"""How much memory and how many cores this process and its children may use: the limits of their cgroup (v1 or v2), or
those of the machine."""

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

SELF = Path("/proc/self")

_OCTAL = re.compile(r"\\([0-7]{3})")


class _Files(NamedTuple):
    """The names of the same files in the kernel's two versions. The kernel frees the pages of files when memory is
    needed."""

    limit: str
    usage: str
    of_files: tuple[str, ...]


_V1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_V2 = _Files("memory.max", "memory.current", ("active_file", "inactive_file"))


def memory_limit(process: Path = SELF) -> int:
    """Bytes: the lowest limit of the cgroup and its parents, at most the memory of the machine."""
    return min([psutil.virtual_memory().total, *(limit for _, limit, _ in _limits(process))])


def memory_available(process: Path = SELF) -> int:
    """Bytes that this process could take now without swapping, and without reaching `memory_limit`. Never below 0."""
    free = [limit - _used(folder, files) for folder, limit, files in _limits(process)]
    return max(min([psutil.virtual_memory().available, *free]), 0)


def cores(process: Path = SELF) -> int:
    """The cores on which this process may run, or fewer if its cgroup has a quota of processor time. At least 1."""
    return cores_by_quota(process) or _runnable()


def cores_by_quota(process: Path = SELF) -> int | None:
    """The number of cores by the cgroup's quota; None if the quota does not limit it. Libraries ignore the quota, and
    start a thread for each core on which they may run."""
    least = min((math.ceil(quota / period) for quota, period in _quotas(process)), default=None)
    return least if least is not None and least < _runnable() else None


def _runnable() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _quotas(process: Path) -> Iterator[tuple[int, int]]:
    """Quota and period, in µs, of the cgroup and its parents. The quota is the time of all cores together."""
    for folder, version in _lineage(process, "cpu"):
        if version == 2:
            texts = " ".join(_lines(folder / "cpu.max")).split()
        else:
            texts = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
        if len(texts) == 2 and all(text.isdecimal() and int(text) > 0 for text in texts):  # -1 and `max`: no limit
            yield int(texts[0]), int(texts[1])


def _limits(process: Path) -> Iterator[tuple[Path, int, _Files]]:
    """The folders of the cgroup and its parents that have a memory limit. Without cgroups it yields nothing."""
    for folder, version in _lineage(process, "memory"):
        files = _V2 if version == 2 else _V1
        if (limit := _number(folder / files.limit)) is not None:
            yield folder, limit, files


def _lineage(process: Path, controller: str) -> Iterator[tuple[Path, int]]:
    """The folder of this process's cgroup and its parents, each with its version."""
    for mount, folder, version in _folders(process, controller):
        for each in (folder, *folder.parents):
            yield each, version
            if each == mount:
                break


def _folders(process: Path, controller: str) -> Iterator[tuple[Path, Path, int]]:
    """Where the controller is mounted, and the folder of this process in it."""
    paths = _paths(process)
    for line in _lines(process / "mountinfo"):
        fields, _, kind = line.partition(" - ")
        kind, _, options = kind.partition(" ")
        if kind == "cgroup2" and "" in paths:
            path, version = paths[""], 2
        elif kind == "cgroup" and controller in options.split(" ")[-1].split(",") and controller in paths:
            path, version = paths[controller], 1
        else:
            continue
        root, mount = (_OCTAL.sub(_unescaped, field) for field in fields.split(" ")[3:5])
        yield Path(mount), _below(Path(mount), root, path), version


def _below(mount: Path, root: str, path: str) -> Path:
    """Inside a container the process's own cgroup is the root of the mount, whatever the path says."""
    try:
        return mount / Path(path).relative_to(root)
    except ValueError:
        return mount


def _paths(process: Path) -> dict[str, str]:
    """The path of the cgroup by controller; the key of version 2 is ""."""
    found = dict[str, str]()
    for line in _lines(process / "cgroup"):
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _used(folder: Path, files: _Files) -> int:
    stat = {name: value for name, _, value in (line.partition(" ") for line in _lines(folder / "memory.stat"))}
    return (_number(folder / files.usage) or 0) - sum(int(stat.get(name, 0)) for name in files.of_files)


def _number(file: Path) -> int | None:
    """None if the file does not exist, and for version 2's `max`."""
    text = "".join(_lines(file))
    return int(text) if text.isdecimal() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
