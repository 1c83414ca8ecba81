"""Packs a servable of MindSpore Serving: a folder with `servable_config.py` and a folder a version."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from msx_archiver.copying import Watch, unwatched
from msx_archiver.errors import PackError
from msx_archiver.options import PackOptions
from msx_archiver.output import Warn, silent
from msx_archiver.pack import archived, check_options
from msx_archiver.python_files import check_python, warnings_of_names
from msx_archiver.sources import ModelSources, check_config
from msx_core.manifest import ModelEntry
from msx_core.safe_yaml import read_yaml
from msx_core.servables import CONFIG_NAME
from msx_core.values import ConfigError

HANDLER = "servable"
YAML = "model-config.yaml"
REQUIREMENTS = "requirements.txt"
OPTION = "--servable"
DEFAULTS = {"jobQueueSize": 10_000, "batchSize": 32, "maxBatchDelay": 0}
"""MindSpore Serving takes 10,000 requests before it refuses one, and never waits for a batch to become full."""
_LEFT_OUT = ("__pycache__", "MAR-INF")


def servable_versions(folder: Path) -> list[int]:
    """The versions of a servable, ascending: the names of its folders that are numbers. None of them is the version 1.

    Raises PackError for a folder that is not a servable.
    """
    return sorted(_version_folders(folder)) or [1]


def pack_servable(
    folder: Path,
    version: int | None,
    to: Path,
    *,
    output: Path | None = None,
    config: Mapping[str, Any] | None = None,
    archive_format: str = "default",
    force: bool = False,
    warn: Warn = silent,
    watch: Watch = unwatched,
) -> Path:
    """Makes `{name}-{version}.mar` in the folder `to`, or the file `output`, and returns its path; `version` None is
    the newest.

    The servable's name is its folder's. `config` has keys of model-config.yaml, which replace those of the file of that
    name in the folder, and those `DEFAULTS`. Raises PackError; then nothing is left behind.
    """
    folder = Path(os.path.abspath(folder))
    folders = _version_folders(folder)
    number = max(folders, default=1) if version is None else version
    if folders and number not in folders:
        raise PackError(f"The servable {folder} has no version {number}; its versions are {_listed(sorted(folders))}.")
    options = PackOptions(
        model_name=folder.name,
        handler=HANDLER,
        version=str(number),
        export_path=to,
        output=output,
        archive_format=archive_format,
        force=force,
    )
    check_options(options)
    with tempfile.TemporaryDirectory(prefix="msx-servable-") as made:
        yaml_file = Path(made, YAML)
        return archived(
            options,
            f"{folder.name}-{number}",
            lambda: _collect(folder, folders.get(number), options, yaml_file, config or {}),
            warn,
            watch,
        )


def _version_folders(folder: Path) -> dict[int, Path]:
    """Raises PackError."""
    if not folder.is_dir():
        raise PackError(f"{OPTION}: '{folder}' is not a folder.")
    if not (folder / CONFIG_NAME).is_file():
        raise PackError(f"{OPTION}: '{folder}' has no {CONFIG_NAME}, so that it is not a servable.")
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if re.fullmatch(r"[0-9]{1,18}", path.name) and path.is_dir():
            if other := found.get(int(path.name)):
                raise PackError(f"{OPTION}: '{other}' and '{path}' are the same version; remove one of them.")
            found[int(path.name)] = path
    return found


def _collect(
    folder: Path, version: Path | None, options: PackOptions, yaml_file: Path, config: Mapping[str, Any]
) -> ModelSources:
    """Raises PackError."""
    check_python(folder / CONFIG_NAME)
    requirements = REQUIREMENTS if (folder / REQUIREMENTS).is_file() else None
    entry = ModelEntry(
        model_name=options.model_name,
        handler=HANDLER,
        model_version=options.version,
        requirements_file=requirements,
        config_file=YAML,
    )
    sources = ModelSources(model=entry)
    sources.add(_files(folder), OPTION)
    if version is not None:
        sources.add(((f"{options.version}/{path}", file) for path, file in _files(version, within=folder)), OPTION)
    sources.warnings += warnings_of_names(sources.files, OPTION)
    _write_config(sources.files.pop(YAML, None), yaml_file, config)
    sources.add([(YAML, yaml_file)], OPTION)
    sources.warnings += check_config(yaml_file)
    return sources


def _files(root: Path, within: Path | None = None) -> Iterator[tuple[str, Path]]:
    """The files of a folder without hidden ones; without folders of versions, unless it is one, `within` its servable.
    Raises PackError for a link to a folder, or out of the servable."""
    inside = (within or root).resolve()
    for place, folders, names in os.walk(root, onerror=_raise):
        at_top = within is None and Path(place) == root
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _LEFT_OUT and not (at_top and name.isdigit())
        )
        for name in [*sorted(names), *(name for name in folders if Path(place, name).is_symlink())]:
            file = Path(place, name)
            if name.startswith("."):
                continue
            if file.is_dir() or not file.resolve().is_relative_to(inside):
                what = "to a folder" if file.is_dir() else "that leads out of the servable"
                raise PackError(f"{OPTION}: '{file}' is a link {what}; put what it leads to in its place.")
            yield file.relative_to(root).as_posix(), file


def _raise(error: OSError) -> None:
    raise error


def _write_config(given: Path | None, yaml_file: Path, config: Mapping[str, Any]) -> None:
    """Raises PackError."""
    yaml_file.write_text(yaml.safe_dump(settings(given, config), sort_keys=False, allow_unicode=True))


def settings(given: Path | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of the servable's own file, and those that replace them. Raises PackError."""
    try:
        own = (read_yaml(given) if given else None) or {}
    except ConfigError as error:
        raise PackError(str(error)) from None
    if not isinstance(own, dict):
        raise PackError(f"{given}: it is not a mapping of keys to values.")
    merged = {key: {**own[key], **value} for key, value in config.items() if _are_sections(own.get(key), value)}
    return {**DEFAULTS, **own, **config, **merged}


def _are_sections(own: Any, value: Any) -> bool:
    """Their keys are replaced one by one, as those of the whole file are."""
    return isinstance(own, dict) and isinstance(value, Mapping)


def _listed(versions: list[int]) -> str:
    return " and ".join(filter(None, (", ".join(map(str, versions[:-1])), str(versions[-1]))))
