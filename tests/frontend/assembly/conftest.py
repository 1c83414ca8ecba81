"""An environment for a server in this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the environment and the folder of this process, which is the server here."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.chdir(tmp_path)
