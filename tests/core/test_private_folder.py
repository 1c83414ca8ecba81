from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from msx_core.private_folder import (
    PATH_PREFIX,
    PREFIX,
    PrivateFolder,
    left,
)

LEFT = (f"{PREFIX}leftleft", f"{PATH_PREFIX}x_123456")


def test_folders_of_killed_scripts_and_servers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in (*LEFT, f"{PREFIX}youngone", "other", f"{PATH_PREFIX}docs"):
        (tmp_path / name / "store").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}linklink").symlink_to(tmp_path / "elsewhere")
    living = PrivateFolder(PATH_PREFIX)
    for name in (*LEFT, "other", f"{PATH_PREFIX}docs", living.path):
        os.utime(tmp_path / name, (1, 1))
    assert {Path(path).name for path in left(str(tmp_path))} == set(LEFT)
    own = PrivateFolder()
    assert os.path.isdir(own.made("store"))
    names = {f"{PREFIX}youngone", f"{PREFIX}linklink", "other", f"{PATH_PREFIX}docs", "elsewhere"}
    assert set(os.listdir(tmp_path)) == names | {Path(one.path).name for one in (living, own)}
    for one in (own, living):
        one.remove()
    assert set(os.listdir(tmp_path)) == names
