"""Servables for `start_servables`: the configurations of one call, checked, and merged by servable and version."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .start_config import ServableStartConfig

CONFIG_FILE = "servable_config.py"


@dataclass(frozen=True)
class StartedServable:
    """One version of a servable. `version` 0: the folder has no versions."""

    directory: str
    name: str
    version: int
    device_ids: tuple[int, ...]
    device_type: str
    num_parallel_workers: int
    dec_key: bytes | None = field(repr=False)
    dec_mode: str


def checked(configs: Any) -> Sequence[ServableStartConfig]:
    """One configuration, or a list or tuple of them. Raises RuntimeError."""
    if isinstance(configs, ServableStartConfig):
        return (configs,)
    if not isinstance(configs, tuple | list):
        raise RuntimeError(
            f"Parameter '{configs}' should be ServableStartConfig, list or tuple of ServableStartConfig, "
            f"but actually {type(configs)}"
        )
    for config in configs:
        if not isinstance(config, ServableStartConfig):
            raise RuntimeError(
                f"The item of parameter '{configs}' should be ServableStartConfig, but actually {type(config)}"
            )
    return configs


def merged(configs: Iterable[ServableStartConfig]) -> list[StartedServable]:
    """Servables in the order of the configurations. Raises RuntimeError."""
    first: dict[str, StartedServable] = {}
    found: dict[tuple[str, int], StartedServable] = {}
    for config in configs:
        start = _start(config)
        _check_same(start, first.setdefault(start.name, start))
        start = replace(start, version=start.version or newest(os.path.join(start.directory, start.name)))
        key = start.name, start.version
        found[key] = _united(found[key], start) if key in found else start
    return list(found.values())


def versions(folder: str) -> list[int]:
    """The numbers of the version folders in a servable's folder, the newest last."""
    names = [entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name.isdecimal()]
    return sorted(int(name) for name in names if name.isascii())


def newest(folder: str) -> int:
    """0 without version folders."""
    return max(versions(folder), default=0)


def script_folder() -> str:
    """The folder that relative paths of a start script are relative to."""
    return os.path.realpath(os.path.dirname(sys.argv[0]))


def from_script_folder(path: str) -> str:
    return os.path.realpath(os.path.join(script_folder(), path))


def _start(config: ServableStartConfig) -> StartedServable:
    start = StartedServable(
        directory=from_script_folder(config.servable_directory),
        name=config.servable_name,
        version=config.version_number,
        device_ids=config.device_ids,
        device_type=config.device_type,
        num_parallel_workers=config.num_parallel_workers,
        dec_key=config.dec_key,
        dec_mode=config.dec_mode,
    )
    check_folder(start)
    return start


def check_folder(start: StartedServable) -> None:
    folder = os.path.join(start.directory, start.name)
    if not os.path.isdir(folder):
        raise RuntimeError(
            f"Check servable config failed, directory '{folder}' not exist, servable directory '{start.directory}', "
            f"servable name '{start.name}'"
        )
    file = os.path.join(folder, CONFIG_FILE)
    if not os.path.isfile(file):
        raise RuntimeError(
            f"Check servable config failed, file '{file}' not exist,  servable directory '{start.directory}', "
            f"servable name '{start.name}'"
        )


def _check_same(start: StartedServable, first: StartedServable) -> None:
    if start.directory != first.directory:
        raise RuntimeError(
            f"The servable directory of servable name {start.name} is different in multiple configurations, "
            f"servable directory: {start.directory} and {first.directory}"
        )
    if (start.dec_key, start.dec_mode) != (first.dec_key, first.dec_mode):
        raise RuntimeError(
            f"The dec key or dec mode of servable name {start.name} is different in multiple configurations."
        )


def _united(one: StartedServable, other: StartedServable) -> StartedServable:
    return replace(
        one,
        device_ids=tuple(dict.fromkeys((*one.device_ids, *other.device_ids))),
        num_parallel_workers=max(one.num_parallel_workers, other.num_parallel_workers),
    )
