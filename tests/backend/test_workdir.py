from __future__ import annotations

import os
from pathlib import Path

import pytest

from msx_backend.workdir import furnish


def test_the_archives_entries_are_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, cwd = tmp_path / "model", tmp_path / "cwd"
    (model / "vocab").mkdir(parents=True)
    (model / "vocab" / "words.txt").write_text("cat")
    (model / "labels.json").write_text("{}")
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    furnish(Path("../model"))
    assert Path("labels.json").read_text() == "{}"
    assert Path("vocab/words.txt").read_text() == "cat"
    assert os.readlink("labels.json") == str(model / "labels.json")


def test_what_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, cwd = tmp_path / "model", tmp_path / "cwd"
    model.mkdir()
    cwd.mkdir()
    for name in ("kept", "dangling"):
        (model / name).write_text("archive")
    (cwd / "kept").write_text("mine")
    (cwd / "dangling").symlink_to(tmp_path / "nowhere")
    monkeypatch.chdir(cwd)
    furnish(model)
    furnish(model)
    assert Path("kept").read_text() == "mine"
    assert os.readlink("dangling") == str(tmp_path / "nowhere")
