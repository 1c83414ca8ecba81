from __future__ import annotations

import io
import json
import resource
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MANIFEST = json.dumps({"model": {"modelName": "m", "handler": "h.py"}}).encode()
HANDLER = b"def handle(data, context):\n    return data\n"
FILES = {"h.py": HANDLER, "sub/data.bin": bytes(range(256)) * 8, "MAR-INF/MANIFEST.json": MANIFEST}

Entry = tuple[Any, bytes]
"""A ZipInfo, TarInfo or plain name, and the bytes."""


def write_zip(path: Path, entries: list[Entry], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return path


def write_tgz(path: Path, entries: list[Entry]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for entry, data in entries:
            info = tarfile.TarInfo(entry) if isinstance(entry, str) else entry
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def mar(tmp_path: Path) -> Path:
    """Archive as torch-model-archiver makes it: a zip whose manifest lists no files."""
    return write_zip(tmp_path / "m.mar", list(FILES.items()))


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Work in a new folder with these files."""

    def enter(**files: bytes | str) -> Path:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        for name, data in files.items():
            (folder / name.replace("__", ".")).write_bytes(data.encode() if isinstance(data, str) else data)
        return folder

    return enter


@contextmanager
def small_files_only() -> Iterator[None]:
    """The kernel refuses to let any file grow past 64 KiB, as it would on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
