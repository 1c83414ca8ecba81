"""Knowledge of the commands about a server that runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.assembly.pid_file import NAME
from msx_frontend.cli import commands
from msx_frontend.cli.commands import SeveralServersError, stop_limit, the_one
from msx_frontend.cli.options import Options
from tests.frontend.assembly.test_instance import info


@pytest.mark.parametrize(("drain", "limit"), [(0, 90), (30, 90), (300, 360)])
def test_a_stop_waits_longer_than_the_server_drains(tmp_path: Path, drain: float, limit: float) -> None:
    assert stop_limit(msgspec.structs.replace(info(tmp_path), drain_timeout=drain)) == limit


def options(**given: Any) -> Options:
    own = {"model_store": None, "workflow_store": None, "plugins_path": None, "ts_config": None, "log_config": None}
    flags = {"foreground": False, "ncs": False, "enable_model_api": None, "disable_token_auth": None}
    return Options(models=(), **{**own, **flags, **given})


@pytest.mark.parametrize(("variables", "found"), [({"TEMP": "here"}, True), ({"TEMP": "other"}, False), ({}, False)])
def test_of_several_servers_the_one_of_the_pid_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], found: bool
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / NAME).write_text(str(os.getpid()))
    own, other = (msgspec.structs.replace(info(tmp_path / f"{pid}"), pid=pid) for pid in (os.getpid(), 1))
    monkeypatch.setattr(commands, "running", lambda options: [own, other])
    asked = options(env={name: str(tmp_path / folder) for name, folder in variables.items()})
    if found:
        assert the_one(asked) is own
    else:
        with pytest.raises(SeveralServersError):
            the_one(asked)
