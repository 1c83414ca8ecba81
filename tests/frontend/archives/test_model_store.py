"""Archives are found by the name of their file."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import ArchiveNotFound
from tests.frontend.packing import pack_model


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    root.mkdir()
    return root


@pytest.fixture
def store(root: Path) -> ModelStore:
    return ModelStore(root, StateFolder(root / ".msx", root))


@pytest.mark.parametrize("url", ["m.mar", "sub/m.mar", "/elsewhere/m.mar"])
def test_an_archive_is_found_by_its_file_name(root: Path, store: ModelStore, url: str) -> None:
    path = pack_model(root)
    assert store.locate(ArchiveUrl.parse(url)) == path


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "empty url"),
        ("../m.mar", "Relative path is not allowed in url: ../m.mar"),
        ("nobody.mar", "Model not found at: nobody.mar (model store: "),
        ("x" * 5000, "Model not found at: "),
        ("a\0b", "Model not found at: "),
        ("s3://bucket/m.mar", "Model not found at: s3://bucket/m.mar (model store: "),
        ("ftp://host/m.mar", "Model not found at: ftp://host/m.mar (model store: "),
    ],
)
def test_archives_that_are_not_there(store: ModelStore, url: str, words: str) -> None:
    with pytest.raises(ArchiveNotFound) as caught:
        store.locate(ArchiveUrl.parse(url))
    assert caught.value.message.startswith(words)


def test_all_archives(root: Path, store: ModelStore) -> None:
    names = ["a.mar", "b.tar.gz", "c.tgz", "d.zip"]
    hidden = ["._a.mar", ".a.mar.Xy12Z", ".hidden.mar", ".nfs000000012"]
    for name in [*names, *hidden, "readme.txt", "config.yaml"]:
        (root / name).write_text("")
    (root / "folder" / "MAR-INF").mkdir(parents=True)
    (root / "folder" / "MAR-INF" / "MANIFEST.json").write_text("{}")
    for name in ("nothing", "lost+found", "__MACOSX"):
        (root / name).mkdir()
    shutil.copytree(root / "folder", root / ".snapshot")
    assert [path.name for path in store.all_archives()] == [*names, "folder"]


def test_a_folder_that_cannot_be_read_is_none(store: ModelStore, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `lost+found`, which is root's alone. A test may run as root, whom nothing is closed to."""
    (root / "lost+found").mkdir()
    stat = os.stat

    def closed(path: str | Path, **options: bool) -> os.stat_result:
        if "lost+found/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", closed)
    assert store.all_archives() == []
