from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from msx_sdk.compat.mindspore_serving.server.private_folder import PREFIX, PrivateFolder


def test_folders_of_killed_scripts_and_servers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in (f"{PREFIX}left", f"{PREFIX}young", "other"):
        (tmp_path / name / "store").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    living = PrivateFolder()
    for name in (f"{PREFIX}left", "other", living.path):
        os.utime(tmp_path / name, (1, 1))
    own = PrivateFolder()
    assert os.path.isdir(own.made("store"))
    names = {f"{PREFIX}young", f"{PREFIX}link", "other", "elsewhere"}
    assert set(os.listdir(tmp_path)) == names | {Path(one.path).name for one in (living, own)}
    for one in (own, living):
        one.remove()
    assert set(os.listdir(tmp_path)) == names
