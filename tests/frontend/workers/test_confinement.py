"""The command, folder and variables of a worker that may have less."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from msx_frontend.config.worker_rights import User
from msx_frontend.workers.confinement import FREE, LAUNCHER, Confinement
from tests.other_user import UID, needs_root


def test_nothing_changes_where_nothing_is_asked_for(tmp_path: Path) -> None:
    FREE.furnish(tmp_path)
    assert (FREE.command(["a", "b"]), FREE.environment(tmp_path), os.listdir(tmp_path)) == (["a", "b"], {}, [])


def test_the_command() -> None:
    confined = Confinement(User(7, 8, (9, 10)), (("nofile", 5),), no_new_privileges=True)
    options = ["--limit=nofile=5", "--user=7", "--group=8", "--groups=9,10", "--no-new-privileges", "--"]
    assert confined.command(["a"]) == [sys.executable, "-I", "-S", str(LAUNCHER), *options, "a"]
    assert LAUNCHER.is_file()


@needs_root
def test_a_folder_of_its_own(tmp_path: Path) -> None:
    confined = Confinement(User(UID, UID))
    confined.furnish(tmp_path)
    variables = confined.environment(tmp_path)
    for folder in (tmp_path, *(Path(variables[name]) for name in ("HOME", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME"))):
        found = folder.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (UID, UID, 0o700)


@needs_root
def test_its_output_is_its_own() -> None:
    read, write = os.pipe()
    Confinement(User(UID, UID)).give(write)
    assert os.fstat(write).st_uid == UID
    os.close(read)
    os.close(write)
