"""Servers that start in one current folder."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from msx_frontend.assembly.context import _open_keys
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import state_folder
from msx_frontend.keys.locked_file import KeyFileTaken
from msx_frontend.keys.opening import ServerKeys


def open_keys(store: Path, state: Path | None) -> ServerKeys:
    config = ServerConfig(model_store=store, state_dir=state)
    folder = state_folder(config)
    folder.make()
    return _open_keys(config, folder)


def test_each_replica_has_a_key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has TorchServe's place, the others theirs: replicas have a state folder each."""
    monkeypatch.chdir(tmp_path)
    opened = [open_keys(tmp_path, tmp_path / name) for name in ("one", "two")]
    try:
        files = [tmp_path / "key_file.json", tmp_path / "two" / "key_file.json"]
        assert [keys.tokens and keys.tokens.path for keys in opened] == files
        assert len({json.loads(file.read_text())["API"]["key"] for file in files}) == 2
        with pytest.raises(KeyFileTaken, match="belongs to a server that is running"):
            open_keys(tmp_path, None)
    finally:
        for keys in opened:
            asyncio.run(keys.close())
