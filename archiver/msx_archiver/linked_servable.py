"""A servable of MindSpore Serving as a model's folder whose files are links: for start scripts, which copy nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from msx_archiver.output import created_on, own_version, source_date
from msx_archiver.servable import HANDLER, REQUIREMENTS, YAML, settings
from msx_core.manifest import MANIFEST_PATH, Manifest, ModelEntry


def linked_servable(folder: Path, version: int, target: Path, config: Mapping[str, Any]) -> Path:
    """A model's folder (`no-archive`) at `target`, with links to all files of the servable in `folder` but those of
    other versions. Models may be links themselves, as they are where one file serves several versions.

    `config` has keys of model-config.yaml, which replace those of the servable's own file. `version` 0: it has no
    folder for its version. Raises PackError, OSError.
    """
    linked(((name, file) for name, file in _files(folder, version) if name != YAML), target)
    for other in os.listdir(folder):
        if _is_other(other, version) and (folder / other).is_dir():
            (target / other).mkdir()  # empty, for messages that depend on whether there are versions at all
    own = folder / YAML
    (target / YAML).write_text(yaml.safe_dump(settings(own if own.is_file() else None, config), sort_keys=False))
    write_manifest(
        target,
        ModelEntry(
            model_name=folder.name,
            handler=HANDLER,
            model_version=str(version or 1),
            requirements_file=REQUIREMENTS if (folder / REQUIREMENTS).is_file() else None,
            config_file=YAML,
        ),
    )
    return target


def linked(files: Iterable[tuple[str, Path]], target: Path) -> None:
    """Links to files by their paths in the model's folder `target`. Raises OSError."""
    for name, file in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(file.resolve())


def write_manifest(target: Path, model: ModelEntry) -> None:
    """Raises OSError."""
    manifest = Manifest(model=model, created_on=created_on(source_date()), archiver_version=own_version())
    (target / MANIFEST_PATH).parent.mkdir(parents=True)
    (target / MANIFEST_PATH).write_bytes(manifest.to_json())


def _files(root: Path, version: int) -> Iterator[tuple[str, Path]]:
    """Files by their paths in the model's folder, without caches and hidden files. Links that lead to a folder again
    are not followed."""
    seen: set[str] = set()
    for at, folders, names in os.walk(root, followlinks=True):
        here = Path(at)
        if (real := os.path.realpath(at)) in seen:
            folders.clear()
            continue
        seen.add(real)
        top = here == root
        folders[:] = sorted(name for name in folders if not _left_out(name) and not (top and _is_other(name, version)))
        for name in sorted(names):
            if not _left_out(name) and (here / name).is_file():
                yield (here / name).relative_to(root).as_posix(), here / name


def _left_out(name: str) -> bool:
    return name.startswith(".") or name in ("__pycache__", "MAR-INF")


def _is_other(name: str, version: int) -> bool:
    """Whether it is the folder of another version; MindSpore Serving opens the number without zeros before it."""
    return name.isascii() and name.isdecimal() and name != str(version)
