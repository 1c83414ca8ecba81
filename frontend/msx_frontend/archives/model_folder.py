"""The model's folder (`no-archive`) that is made of a path: its files are links, so that nothing is copied."""

import os
import secrets
import shutil
from pathlib import Path

from msx_archiver.linked_checkpoint import CONFIG, linked_checkpoint
from msx_archiver.linked_gguf import gguf_in, linked_gguf
from msx_archiver.linked_servable import linked, linked_servable, write_manifest
from msx_archiver.servable import YAML
from msx_core.manifest import MANIFEST_PATH, ModelEntry
from msx_frontend.archives.guess import MANIFEST, SERVABLE, guess, name_of

VERSION = "1.0"


def made_folder(path: Path, target: Path, weights: Path | None = None) -> str:
    """Makes `target`, which must not exist; returns what was guessed, in words. `weights` are of a Python file.

    Raises StartError, ArchiveError, OSError.
    """
    if weights is None and path.is_dir() and (path / SERVABLE).is_file():
        linked_servable(path, 0, target, {})
        return "a servable of MindSpore Serving"
    if weights is None and path.is_dir() and (path / CONFIG).is_file() and any(path.glob("*.safetensors*")):
        linked_checkpoint(path, name_of(path), target)
        return "a language or embedding model in Hugging Face's layout"
    if weights is None and (file := gguf_in(path)) is not None:
        linked_gguf(file, name_of(path), target)
        return "a language model in a GGUF file"
    found = guess(path, weights)
    linked(((name, file) for name, file in found.files.items() if not name.startswith(MANIFEST)), target)
    write_manifest(
        target,
        ModelEntry(
            model_name=found.name,
            handler=found.handler,
            model_version=VERSION,
            serialized_file=found.serialized,
            model_file=found.model_file,
            config_file=YAML if found.config else None,
        ),
    )
    return found.said


def hub_folder(path: Path, target: Path) -> Path:
    """The model's folder of what was fetched from a hub: `path` itself where it is an unpacked archive, else `target`,
    made of links. Blocks.

    The folder has the same digest wherever it is made of the same files. Raises StartError, ArchiveError, OSError.
    """
    if (path / MANIFEST_PATH).is_file():
        return path
    if (target / MANIFEST_PATH).is_file():
        return target
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        aside.parent.mkdir(0o711, parents=True, exist_ok=True)
        made_folder(path, aside)
        newest = max(file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file())
        for made in (aside / MANIFEST_PATH, aside / YAML):
            if made.exists() and not made.is_symlink():
                os.utime(made, ns=(newest, newest))
        try:
            aside.rename(target)
        except OSError:
            if not (target / MANIFEST_PATH).is_file():  # else another call has made it meanwhile
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target
