from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.extra_files import expand_extra_files
from tests.archiver.conftest import write_folder

InFolder = Callable[..., Path]


def expand(listed: str) -> dict[str, str]:
    found, warnings = expand_extra_files(listed)
    assert warnings == []
    assert len(dict(found)) == len(found)
    return {path: file.as_posix() for path, file in found}


def test_files_go_to_the_root(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"a.txt": b"", "d/b.txt": b""})
    assert expand("a.txt,d/b.txt") == {"a.txt": "a.txt", "b.txt": "d/b.txt"}


def test_spaces_and_empty_items(in_folder: InFolder) -> None:
    in_folder(a="", b="")
    assert expand(" a, b,,").keys() == {"a", "b"}


def test_folders_are_flattened_but_their_folders_kept(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"d/a": b"", "d/e/b": b"", "d/e/f/c": b""})
    assert expand("d").keys() == {"a", "e/b", "e/f/c"}
    assert expand("d/").keys() == {"a", "e/b", "e/f/c"}


def test_hidden_folders_and_caches_are_dropped_but_dot_files_kept(in_folder: InFolder) -> None:
    dropped = {"d/.git/x": b"", "d/__pycache__/x": b"", "d/e/__MACOSX/x": b""}
    write_folder(in_folder(), {**dropped, "d/.env": b"", "d/e/.keep": b""})
    assert expand("d").keys() == {".env", "e/.keep"}


def test_globs(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"a1": b"", "a2": b"", "b1": b"", "da/x": b""})
    assert expand("a*").keys() == {"a1", "a2"}
    assert expand("?1").keys() == {"a1", "b1"}
    assert expand("[b]1").keys() == {"b1"}
    assert expand("d*").keys() == {"x"}


def test_name_that_looks_like_a_glob(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"a[1]": b"", "a1": b""})
    assert expand("a[1]").keys() == {"a[1]"}


def test_glob_without_a_match_is_a_warning(in_folder: InFolder) -> None:
    in_folder()
    assert expand_extra_files("*.none") == ([], ["--extra-files: nothing matches '*.none'."])


def test_missing_file_is_an_error(in_folder: InFolder) -> None:
    in_folder()
    with pytest.raises(PackError, match="'none' does not exist"):
        expand_extra_files("none")


def test_links_to_files_are_followed(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"blobs/x": b"weights", "d/keep": b""})
    os.symlink("../blobs/x", "d/model.bin")
    assert expand("d").keys() == {"keep", "model.bin"}


def test_old_manifest_is_left_out(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"d/MAR-INF/MANIFEST.json": b"", "d/a": b""})
    found, warnings = expand_extra_files("d")
    assert [path for path, _ in found] == ["a"]
    assert "old manifest d/MAR-INF/MANIFEST.json" in warnings[0]
