"""Which user an archive's workers are."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.models.versions import worker_rights
from msx_frontend.models.versions.worker_rights import WorkerRights
from msx_frontend.workers.confinement import FREE, Confinement
from tests.loops import run
from tests.other_user import UID, needs_root


class Bench:
    def __init__(self, folder: Path, **keys: Any) -> None:
        self.state = StateFolder(folder / "state", folder)
        for part in ("models/a", "models/b", "compiled", "run", "logs"):
            (self.state.path / part).mkdir(parents=True)
        self.used = {"a", "b", "c"}
        self.rights = WorkerRights(ServerConfig(**keys), self.state, self.used.__contains__)

    def uid(self, digest: str) -> int:
        run(self.rights.prepare(digest))
        user = self.rights.of(digest).user
        assert user is not None
        return user.uid


def rights_of(path: Path) -> tuple[int, int, str]:
    found = path.stat()
    return found.st_uid, found.st_gid, oct(stat.S_IMODE(found.st_mode))


def test_the_servers_user_by_default(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run(bench.rights.prepare("a"))
    bench.rights.open(sys.executable, os.environ)
    assert bench.rights.of("a") == FREE


def test_limits_and_privileges_need_no_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path, worker_limits=("core=0",), worker_no_new_privileges=True)
    assert bench.rights.of("a") == Confinement(None, (("core", 0),), True)


@needs_root
def test_one_user_for_all(tmp_path: Path) -> None:
    bench = Bench(tmp_path, worker_user=str(UID))
    assert [bench.uid(digest) for digest in "abc"] == [UID] * 3
    assert bench.rights.of("a").no_new_privileges


@needs_root
def test_a_user_an_archive(tmp_path: Path) -> None:
    bench = Bench(tmp_path, worker_user=f"{UID}-{UID + 1}")
    one, two = bench.uid("a"), bench.uid("b")
    assert {one, two} == {UID, UID + 1}
    assert bench.uid("a") == one
    assert rights_of(bench.state.models / "a") == (0, one, "0o750")
    assert rights_of(bench.state.compiled / "b") == (two, two, "0o700")
    with pytest.raises(ServiceUnavailable, match=f"all 2 of worker_user .{UID}-{UID + 1}. are taken"):
        bench.uid("c")
    bench.used.remove("b")
    assert bench.uid("c") == two


@needs_root
def test_a_user_who_still_has_processes_is_not_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_rights, "_running", lambda: {UID})
    assert Bench(tmp_path, worker_user=f"{UID}-{UID + 1}").uid("a") == UID + 1


@needs_root
def test_what_another_user_compiled_is_thrown_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path, worker_user=str(UID))
    compiled = bench.state.compiled / "a"
    compiled.mkdir()
    (compiled / "graph").touch()
    bench.uid("a")
    assert os.listdir(compiled) == []
    (compiled / "graph").touch()
    bench.uid("a")
    assert os.listdir(compiled) == ["graph"]


@needs_root
def test_the_start_says_what_the_user_cannot_reach(tmp_path: Path) -> None:
    """pytest's folders are closed to others."""
    bench = Bench(tmp_path, worker_user=str(UID))
    with pytest.raises(ServerConfigError, match=f"worker_user: user {UID} cannot run workers: .*ermission denied"):
        bench.rights.open("/usr/bin/python3", os.environ)
    assert rights_of(bench.state.run)[2] == rights_of(bench.state.models)[2] == "0o711"
    assert rights_of(bench.state.logs)[2] == "0o700"
