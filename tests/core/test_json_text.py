from __future__ import annotations

import codecs

import pytest

from msx_core.json_text import json_text

TEXT = '{"0": "Käse"}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_the_encodings_of_editors(encoding: str) -> None:
    assert json_text(TEXT.encode(encoding)) == TEXT


def test_a_text_that_is_no_unicode() -> None:
    with pytest.raises(ValueError, match="can't decode"):
        json_text(TEXT.encode("latin-1"))
    with pytest.raises(ValueError, match="can't decode"):
        json_text(codecs.BOM_UTF8 + b"\xff")


def test_what_came_in_its_place() -> None:
    with pytest.raises(ValueError, match="it is a pointer of Git LFS, not the file itself: run `git lfs pull`"):
        json_text(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(ValueError, match="it is an HTML page: download it again"):
        json_text(b"<!DOCTYPE html>")
