"""The keys of workers' users and limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.config.load import load_server_config
from msx_frontend.config.worker_rights import LIMITS, User, worker_limits, worker_users


@pytest.fixture
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def refusal(**keys: Any) -> str:
    with pytest.raises(ServerConfigError) as info:
        worker_users(ServerConfig(**keys))
    return str(info.value)


def test_workers_are_the_servers_user_by_default() -> None:
    assert worker_users(ServerConfig()) is None


@pytest.mark.usefixtures("_as_root")
def test_a_number_needs_no_account() -> None:
    users = worker_users(ServerConfig(worker_user="4123456789"))
    assert users is not None
    assert not users.is_range
    assert users.user(users.uids[0]) == User(4123456789, 4123456789)


@pytest.mark.usefixtures("_as_root")
def test_a_name_brings_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getgrouplist", lambda name, group: [group, 77, 42])
    users = worker_users(ServerConfig(worker_user="daemon", worker_groups=("99", "daemon")))
    assert users is not None
    daemon = users.user(users.uids[0])
    assert daemon.uid > 0
    assert {42, 77, 99} <= set(daemon.groups)


@pytest.mark.usefixtures("_as_root")
def test_a_range() -> None:
    users = worker_users(ServerConfig(worker_user="60001-60003"))
    assert users is not None
    assert users.is_range
    assert [users.user(uid) for uid in users.uids] == [User(uid, uid) for uid in (60001, 60002, 60003)]


@pytest.mark.usefixtures("_as_root")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"worker_user": "nobody-at-all"}, "'nobody-at-all' is not a user of this machine, a number, or a range"),
        ({"worker_user": "9-3"}, "'9-3' is not a range"),
        ({"worker_user": "1-99999999999"}, "is not a range"),
        ({"worker_user": "99999999999"}, "the largest is"),
        ({"worker_user": "root"}, "'root' is root"),
        ({"worker_user": "0-5"}, "'0-5' is root"),
        ({"worker_user": "7", "worker_groups": ("no-such-group",)}, "worker_groups: 'no-such-group' is not a group"),
        ({"worker_groups": ("7",)}, "worker_groups: has no effect without worker_user"),
    ],
)
def test_what_cannot_be_meant(keys: dict[str, Any], words: str) -> None:
    assert words in refusal(**keys)


def test_only_root_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root can start workers as another user, and this server runs as user 1000" in refusal(worker_user="7")


def test_limits() -> None:
    assert worker_limits(["nofile=512", " core = 0 ", "nofile=99"]) == (("nofile", 99), ("core", 0))
    import resource

    assert all(hasattr(resource, f"RLIMIT_{name.upper()}") for name in LIMITS)


@pytest.mark.parametrize("part", ["nofile", "nofile=", "nofile=-1", "files=3", "nofile=1e3", f"as={1 << 63}"])
def test_what_is_not_a_limit(part: str) -> None:
    with pytest.raises(ServerConfigError, match="is not a limit: write NAME=NUMBER"):
        worker_limits([part])


def test_they_are_looked_at_when_the_configuration_is_read() -> None:
    with pytest.raises(ServerConfigError, match="'bogus=1' is not a limit"):
        load_server_config({"worker_limits": "bogus=1"}, None, {})


@pytest.mark.usefixtures("_as_root")
def test_workers_of_several_users_share_no_compiled_graphs(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("cache_dir=shared\nworker_user=61234\n")
    with pytest.raises(ServerConfigError, match=r"cache_dir: .*leave out cache_dir or worker_user"):
        load_server_config({}, file, {})
