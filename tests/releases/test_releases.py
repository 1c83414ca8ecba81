"""Files of a release are read by every later one. `make.py` makes a folder for each release."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.contents import verify
from msx_archiver.reader import open_as
from msx_archiver.schema import MODEL, WORKFLOW, ArchiveSchema
from msx_frontend import __version__
from msx_frontend.config.load import load_server_config
from tests.e2e.server import new_store, run_server, server_environment
from tests.releases.arrangement import served

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob("*/state.db"))
of_each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)


def test_the_first_release_is_there() -> None:
    assert "0.1.0" in [release.name for release in RELEASES]


@of_each_release
def test_its_archives_are_whole(release: Path) -> None:
    archives = sorted((release / "store").iterdir())
    assert [archive.name for archive in archives] == ["chain.war", "configured.mar", "echo.mar", "m1.mar", "next.mar"]
    for archive in archives:
        schema: ArchiveSchema[Any] = WORKFLOW if archive.suffix == ".war" else MODEL
        with open_as(schema, archive) as opened:
            assert opened.warnings == []
            assert verify(opened) > 0


@of_each_release
@pytest.mark.parametrize("name", ["config.properties", "snapshot.cfg"])
def test_its_configuration_says_nothing_that_is_not_known(release: Path, name: str, tmp_path: Path) -> None:
    config, notices = load_server_config({"model_store": tmp_path}, release / name, {})
    assert notices == []
    assert (config.default_response_timeout, config.job_queue_size, config.max_request_size) == (60, 50, 1_000_000)
    assert config.cors_allowed_origin == "https://example.org"


def restored(release: Path, folder: Path) -> Path:
    """Its store and state, as a server finds them; returns the state."""
    shutil.copytree(release / "store", new_store(folder), dirs_exist_ok=True)
    state = folder / "store" / ".msx" / "state.db"
    state.parent.mkdir()
    return Path(shutil.copy(release / "state.db", state))


@pytest.mark.e2e
@of_each_release
def test_a_server_of_today_serves_what_it_kept(release: Path, tmp_path: Path) -> None:
    restored(release, tmp_path)
    with run_server(tmp_path, properties=(release / "config.properties").read_text()) as server:
        assert served(server) == json.loads((release / "served.json").read_text())


@pytest.mark.e2e
def test_a_state_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """With both versions and the remedy, and left as it is."""
    state = restored(RELEASES[-1], tmp_path)
    with closing(sqlite3.connect(state)) as db:
        db.executescript("UPDATE written_by SET msx = '99.1'; PRAGMA user_version = 99;")
    data = state.read_bytes()
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--model-store", "store"]
    env = server_environment(tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"state.db was written by MSX 99.1 (schema 99); this is MSX {__version__}, which reads" in done.stderr
    assert "install MSX 99.1 again, or restore a backup, or start with --ncs" in done.stderr
    assert state.read_bytes() == data
