"""Contents of archives: unpacked once each, and gone when no version uses them."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.cache import ArchiveCache
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import InvalidModel
from tests.frontend.packing import pack_model
from tests.loops import run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    root.mkdir()
    return root


@pytest.fixture
def store(root: Path) -> ModelStore:
    return ModelStore(root, StateFolder(root / ".msx", root))


def contents(root: Path) -> list[str]:
    """The digests of what is unpacked."""
    models = root / ".msx" / "models"
    return sorted(entry.name for entry in models.iterdir() if len(entry.name) == 64)


def test_the_same_content_is_unpacked_once_and_kept_until_the_last_has_gone(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        path = pack_model(root)
        first, second = await store.contents.unpack(path), await store.contents.unpack(path)
        assert first == second
        assert (first.path / "echo.py").is_file()
        await store.contents.release(first.digest)
        assert contents(root) == [first.digest]
        await store.contents.release(first.digest)
        assert contents(root) == []

    run(test())


def test_content_is_in_use_until_each_that_shares_it_has_released_it(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        digest = (await store.contents.unpack(pack_model(root))).digest
        assert store.contents.in_use(digest)
        store.contents.share(digest)
        await store.contents.release(digest)
        assert (store.contents.in_use(digest), contents(root)) == (True, [digest])
        await store.contents.release(digest)
        assert (store.contents.in_use(digest), contents(root)) == (False, [])

    run(test())


def test_a_release_takes_the_compiled_graphs_too(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        unpacked = await store.contents.unpack(pack_model(root))
        compiled = store.contents.compile_cache(unpacked.digest)
        compiled.mkdir(parents=True)
        await store.contents.release(unpacked.digest)
        assert not compiled.exists()

    run(test())


def test_using_keeps_the_content_for_who_comes_next(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        async with store.contents.using(pack_model(root)) as unpacked:
            assert unpacked.manifest.model.model_name == "m"
        assert contents(root) == [unpacked.digest]
        await store.clean()
        assert contents(root) == [unpacked.digest]

    run(test())


def test_clean_throws_away_what_is_of_no_use(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        used = await store.contents.unpack(pack_model(root))
        left = root / ".msx" / "models" / ("a" * 64)
        compiled = [store.contents.compile_cache(digest) for digest in (used.digest, "a" * 64)]
        for folder in (left, *compiled):
            folder.mkdir(parents=True)
        await store.clean()
        assert contents(root) == [used.digest]
        assert [folder.exists() for folder in compiled] == [True, False]

    run(test())


def test_a_damaged_archive_leaves_nothing(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        path = pack_model(root)
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(InvalidModel, match=r"m\.mar"):
            await store.contents.unpack(path)
        assert contents(root) == []

    run(test())


class Held:
    """A function of the cache that waits, in its thread, until it may go on: before it works, or `after`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, *, after: bool = False) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._real, self._after = getattr(ArchiveCache, name), after
        monkeypatch.setattr(ArchiveCache, name, lambda *args: self(*args))

    def __call__(self, *args: Any) -> Any:
        done = self._real(*args) if self._after else None
        self.begun.set()
        assert self.go_on.wait(30)
        return done if self._after else self._real(*args)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 30)


def test_what_is_being_unpacked_is_not_removed(root: Path, store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last version of a content goes while another registration has found it, but not yet said so."""

    async def test() -> None:
        path = pack_model(root)
        first = await store.contents.unpack(path)
        held = Held(monkeypatch, "unpack", after=True)
        second = asyncio.ensure_future(store.contents.unpack(path))
        await held.wait()
        await store.contents.release(first.digest)
        held.go_on.set()
        assert ((await second).path / "echo.py").is_file()

    run(test())


def test_a_check_that_nobody_waits_for_does_not_bring_the_content_back(
    root: Path, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a worker that is about to start is stopped, because another one has failed."""

    async def test() -> None:
        unpacked = await store.contents.unpack(pack_model(root))
        held = Held(monkeypatch, "is_intact")
        check = asyncio.ensure_future(store.contents.intact(unpacked.digest))
        await held.wait()
        check.cancel()
        release = asyncio.ensure_future(store.contents.release(unpacked.digest))
        await asyncio.wait({release}, timeout=0.05)  # time to do the wrong thing
        held.go_on.set()
        await release
        assert contents(root) == []

    run(test())
    assert contents(root) == []  # when all threads have ended


def test_what_is_unpacked_for_nobody_is_removed(root: Path, store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        held, removing = Held(monkeypatch, "unpack"), Held(monkeypatch, "remove")
        unpacking = asyncio.ensure_future(store.contents.unpack(pack_model(root)))
        await held.wait()
        unpacking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unpacking
        held.go_on.set()
        await removing.wait()
        assert len(contents(root)) == 1
        removing.go_on.set()
        while contents(root):
            await asyncio.sleep(0.01)

    run(test())


def test_what_nobody_uses_is_removed_behind_what_is_being_unpacked(
    root: Path, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for the other archive, which may be large; if that cannot be unpacked, it goes, too."""

    async def test() -> None:
        first = await store.contents.unpack(pack_model(root))
        held = Held(monkeypatch, "unpack")
        other = pack_model(root, "other")
        other.write_bytes(other.read_bytes()[:100])
        unpacking = asyncio.ensure_future(store.contents.unpack(other))
        await held.wait()
        await store.contents.release(first.digest)
        assert contents(root) == [first.digest]
        held.go_on.set()
        with pytest.raises(InvalidModel):
            await unpacking
        while contents(root):
            await asyncio.sleep(0.01)

    run(test())


def test_what_is_being_removed_is_unpacked_anew(root: Path, store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        path = pack_model(root)
        first = await store.contents.unpack(path)
        held = Held(monkeypatch, "remove")
        release = asyncio.ensure_future(store.contents.release(first.digest))
        await held.wait()
        second = asyncio.ensure_future(store.contents.unpack(path))
        await asyncio.wait({second}, timeout=0.05)  # time to do the wrong thing
        held.go_on.set()
        await release
        assert ((await second).path / "echo.py").is_file()

    run(test())


def test_what_was_changed_is_unpacked_again_with_a_warning(
    root: Path, store: ModelStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        unpacked = await store.contents.unpack(pack_model(root))
        await store.contents.intact(unpacked.digest)
        assert caplog.messages == []
        (unpacked.path / "echo.py").write_text("changed")
        await store.contents.intact(unpacked.digest)
        assert (unpacked.path / "echo.py").read_text() != "changed"
        (warning,) = caplog.messages
        assert warning.startswith("m.mar: 'echo.py' was changed or removed in ")

    run(test())


def test_what_was_changed_and_cannot_be_unpacked_again_is_told(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        unpacked = await store.contents.unpack(archive := pack_model(root))
        shutil.rmtree(unpacked.path)
        pack_model(root, version="2.0")
        with pytest.raises(InvalidModel, match=r"m\.mar were changed .* has another content now: register it again"):
            await store.contents.intact(unpacked.digest)
        archive.unlink()
        with pytest.raises(
            InvalidModel, match=r"m\.mar were changed or removed, and cannot be unpacked again: .*m\.mar"
        ):
            await store.contents.intact(unpacked.digest)

    run(test())


def test_a_folder_that_is_used_where_it_is_may_be_changed(root: Path, store: ModelStore) -> None:
    async def test() -> None:
        unpacked = await store.contents.unpack(pack_model(root))
        folder = root / "folder"
        shutil.copytree(unpacked.path, folder)
        used = await store.contents.unpack(folder)
        (folder / "echo.py").write_text("changed")
        await store.contents.intact(used.digest)
        assert (folder / "echo.py").read_text() == "changed"

    run(test())


def test_what_another_server_uses_is_not_removed(root: Path, tmp_path: Path) -> None:
    """With `cache_dir`: neither when a model goes, nor at a start; compiled graphs no more than archives."""

    async def test() -> None:
        one, two = (ModelStore(root, state_of(tmp_path / name)) for name in ("one", "two"))
        archive = pack_model(root)
        used = [await store.contents.unpack(archive) for store in (one, two)]
        digest = used[0].digest
        assert [unpacked.path for unpacked in used] == [tmp_path / "shared" / "models" / digest] * 2
        compiled = one.contents.compile_cache(digest)
        assert compiled == tmp_path / "shared" / "compiled" / digest
        compiled.mkdir(parents=True)
        await one.contents.release(digest)
        await ModelStore(root, state_of(tmp_path / "three")).clean()
        assert [folder.is_dir() for folder in (used[1].path, compiled)] == [True, True]
        await two.contents.release(digest)
        assert [folder.exists() for folder in (used[1].path, compiled)] == [False, False]

    def state_of(path: Path) -> StateFolder:
        state = StateFolder(path, root, is_named=True, shared=tmp_path / "shared")
        state.make()
        return state

    run(test())
