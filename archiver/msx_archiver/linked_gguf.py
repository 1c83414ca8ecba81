"""A GGUF file as a model's folder: a link to it, and the small files that are made of its metadata."""

import os
from collections.abc import Iterator
from pathlib import Path

from msx_archiver.errors import PackError
from msx_archiver.gguf.packed import written_files
from msx_archiver.linked_servable import linked, write_manifest
from msx_archiver.options import PackOptions
from msx_archiver.pack import check_options
from msx_archiver.servable import YAML
from msx_core.file_kinds import GGUF, SAFETENSORS
from msx_core.manifest import MANIFEST_PATH, ModelEntry
from msx_core.model_families import GENERATES

VERSION = "1.0"
BESIDE = (YAML, "chat_template.jinja", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
"""Files beside it that come before those that are made."""


def gguf_in(path: Path) -> Path | None:
    """The file itself, or the only one of a folder without other weights and code; else None. Raises PackError for
    several."""
    if path.suffix == GGUF and path.is_file():
        return path
    if not path.is_dir() or any((*path.glob(f"*{SAFETENSORS}*"), *path.glob("*.py"))):
        return None
    found = sorted(file for file in path.glob(f"*{GGUF}") if not file.name.startswith("."))
    if len(found) > 1:
        raise PackError(f"{path} has {len(found)} GGUF files: name the one that is to be served.")
    return found[0] if found else None


def linked_gguf(file: Path, name: str, target: Path) -> Path:
    """A model's folder (`no-archive`) at `target`, which must not exist, for MSX's own engine. Where nothing has
    changed, the made folder has the same digest again. Raises PackError, OSError."""
    check_options(PackOptions(model_name=name, handler=GENERATES))
    beside = dict(_beside(file))
    target.mkdir(parents=True)
    linked([*beside.items(), (file.name, file)], target)
    written_files(file, target, beside)
    config = YAML if YAML in beside else None
    write_manifest(
        target,
        ModelEntry(
            model_name=name, handler=GENERATES, model_version=VERSION, serialized_file=file.name, config_file=config
        ),
    )
    made = file.stat().st_mtime_ns
    os.utime(target / MANIFEST_PATH, ns=(made, made))
    return target


def _beside(file: Path) -> Iterator[tuple[str, Path]]:
    return ((name, file.parent / name) for name in BESIDE if (file.parent / name).is_file())
