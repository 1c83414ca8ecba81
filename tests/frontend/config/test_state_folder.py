"""Where a server writes: what was named, else beside its models, with --ncs in a cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder, StateFolderError, can_be_made, state_folder, usual_folders


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("TEMP", raising=False)
    return tmp_path / "cache"


def folder_of(store: Path, **config: object) -> StateFolder:
    return state_folder(ServerConfig(model_store=store, **config))  # type: ignore[arg-type]


def test_it_is_beside_the_models_unless_told_otherwise(store: Path) -> None:
    folder = folder_of(store)
    assert (folder.path, folder.is_beside_models, folder.archives) == (store / ".msx", True, store)


def test_a_named_one_has_everything(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for snapshots in (True, False):
        folder = folder_of(store, state_dir=Path("state"), snapshots=snapshots)
        assert folder.path == tmp_path / "state"
    folder.make()
    below = [folder.lock, folder.info, folder.database, folder.logs, folder.run, folder.models, folder.compiled]
    below += [folder.environments, folder.downloads, folder.archives]
    assert {path.parent for path in below} == {tmp_path / "state"}
    assert list(store.iterdir()) == []


def test_without_a_state_nothing_is_written_beside_the_models(store: Path, cache: Path) -> None:
    folder = folder_of(store, snapshots=False)
    folder.make()
    assert folder.path.parent == cache / "msx-serve" / "stores"
    assert list(store.iterdir()) == []
    assert folder.path in usual_folders(store), "--stop finds it by the model store"


@pytest.mark.parametrize("home", ["not to be written", "none"])
def test_then_without_a_home_it_is_a_private_folder_of_temporary_files(
    store: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    if home == "none":
        monkeypatch.setattr("platformdirs.user_cache_path", lambda name: Path("~/.cache") / name)
    else:
        cache.write_text("")
    folder = folder_of(store, snapshots=False)
    folder.make()
    shared = tmp_path / f"msx-{os.geteuid()}"
    assert shared in folder.path.parents
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    assert not Path("~").exists()
    shared.chmod(0o777)
    with pytest.raises(
        StateFolderError, match=r"/msx-\d+/stores/\w+ cannot be written: it is not a folder that this user"
    ):
        folder.make()


def test_one_that_cannot_be_made_says_how_to_name_another(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    remedy = r"\(--state-dir, state_dir in config\.properties, or MSX_STATE_DIR\)"
    with pytest.raises(
        StateFolderError, match=rf"The state folder .*/file/x cannot be written: Not a dir.* {remedy}\."
    ):
        folder_of(store, state_dir=tmp_path / "file" / "x").make()
    (store / ".msx").write_text("")
    with pytest.raises(StateFolderError, match=rf"The model store .*/store cannot be written: .*{remedy}, or .*--ncs"):
        folder_of(store).make()


def test_what_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert can_be_made(tmp_path / "a" / "b")
    assert not can_be_made(tmp_path / "file" / "b")
    assert not can_be_made(Path("/proc/self/x"))


def test_what_servers_share_lies_elsewhere(store: Path, tmp_path: Path) -> None:
    folder = folder_of(store, state_dir=tmp_path / "state", cache_dir=tmp_path / "shared")
    folder.make()
    assert {path.parent for path in (folder.models, folder.compiled, folder.environments)} == {tmp_path / "shared"}
    assert {path.parent for path in (folder.database, folder.downloads, folder.digests)} == {tmp_path / "state"}
    assert folder.ready_environments is None
    assert folder_of(store).uses() is None


def test_of_a_shared_folder_that_is_read_only_compiled_graphs_are_not_written(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(store, state_dir=tmp_path / "state", cache_dir=tmp_path / "shared")
    folder.make()
    monkeypatch.setattr("msx_frontend.config.state_folder.can_be_made", lambda path: path != tmp_path / "shared")
    assert folder.models == tmp_path / "shared" / "models"
    assert {path.parent for path in (folder.compiled, folder.environments)} == {tmp_path / "state"}
    assert folder.ready_environments == tmp_path / "shared" / "environments"


def test_a_shared_folder_that_cannot_be_used_is_named(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateFolderError, match=r"cache_dir: .*file cannot be used: .* Name a folder"):
        folder_of(store, cache_dir=tmp_path / "file").make()
