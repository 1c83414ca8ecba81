"""The files that are packed beside a GGUF file."""

import os
from collections.abc import Mapping
from pathlib import Path

from msx_archiver.errors import PackError
from msx_archiver.gguf.files import made_files
from msx_core.file_kinds import GGUF, SAFETENSORS


def gguf_files(files: Mapping[str, Path], folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Files by path in the archive, written to `folder`, and sentences of warning; nothing where `files` have no GGUF
    file, or weights beside it that come first. Raises PackError, OSError."""
    found = [path for path in files if path.endswith(GGUF) and "/" not in path]
    if not found or any(path.endswith(SAFETENSORS) for path in files):
        return {}, []
    if len(found) > 1:
        raise PackError(f"'{found[0]}' and '{found[1]}': a model is one GGUF file; leave the others out.")
    return written_files(files[found[0]], folder, files)


def written_files(source: Path, folder: Path, given: Mapping[str, Path]) -> tuple[dict[str, Path], list[str]]:
    """The same of one file. What is made is as old as the file, so that it is the same each time. Raises PackError,
    OSError."""
    made, warnings = made_files(source, given)
    moment = source.stat().st_mtime_ns
    for name, data in made.items():
        (folder / name).write_bytes(data)
        os.utime(folder / name, ns=(moment, moment))
    return {name: folder / name for name in made}, warnings
