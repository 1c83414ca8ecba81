"""Knowledge of the commands about a server that runs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from msx_frontend.cli.commands import stop_limit
from tests.frontend.assembly.test_instance import info


@pytest.mark.parametrize(("drain", "limit"), [(0, 90), (30, 90), (300, 360)])
def test_a_stop_waits_longer_than_the_server_drains(tmp_path: Path, drain: float, limit: float) -> None:
    assert stop_limit(msgspec.structs.replace(info(tmp_path), drain_timeout=drain)) == limit
