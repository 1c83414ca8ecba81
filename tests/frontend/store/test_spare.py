"""New requests leave room on the disk for what ends and deletes earlier ones."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from msx_frontend.batches.line_files import LineFiles
from msx_frontend.batches.outcome import unanswered
from msx_frontend.deferred.book import JobBook, WantedJob
from msx_frontend.deferred.records import Deferred, LateReply
from msx_frontend.store import spare
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import Records
from msx_frontend.store.store import Store
from tests.frontend.deferred.test_jobs import serving
from tests.loops import run

BLOCK = 4096


def disk(monkeypatch: pytest.MonkeyPatch, free: int, whole: int = 1 << 40) -> None:
    found = SimpleNamespace(f_frsize=BLOCK, f_blocks=whole // BLOCK, f_bavail=free // BLOCK)
    monkeypatch.setattr(spare, "os", SimpleNamespace(statvfs=lambda path: found))


@pytest.mark.parametrize(
    ("free", "whole", "size", "takes"),
    [
        (20 << 20, 1 << 40, 1 << 20, True),
        (20 << 20, 1 << 40, 5 << 20, False),
        (1 << 20, 10 << 20, 0, True),
        (1 << 18, 10 << 20, 0, False),
    ],
)
def test_the_last_room_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, whole: int, size: int, takes: bool
) -> None:
    disk(monkeypatch, free, whole)
    if takes:
        spare.check_spare(tmp_path, size)
        return
    with pytest.raises(StoreUnavailable, match=r"takes no more requests: .* are kept for replies and deletions"):
        spare.check_spare(tmp_path, size)


def test_a_job_is_refused_and_one_that_waits_can_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as served:
            id = await served.defer()
            disk(monkeypatch, 0)
            assert "kept for replies and deletions" in await served.defer(status=503)
            states = [(await served.get(id, "DELETE")).json["state"] for _ in range(2)]
            assert states == ["cancelled", "forgotten"]

    run(test())


def test_replies_leave_room_for_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(records: Records, expires: float) -> None: ...

    async def test() -> None:
        with closing(Store(tmp_path / "store.db")) as store:
            book = JobBook(store, 7.0, 10, 1 << 20)
            jobs = [(await book.accept(Deferred(b"/x", [], b"{}"), WantedJob("/x", ""))).job for _ in range(2)]
            disk(monkeypatch, spare.REPLIES.most)
            long, short = (LateReply(200, [], b"x" * size) for size in (2000, 100))
            with pytest.raises(StoreUnavailable, match=r"no more replies: .* 8192 KiB are kept for deletions"):
                await book.end(jobs[0].id, "", jobs[0].head, long, nothing)
            await book.end(jobs[1].id, "", jobs[1].head, short, nothing)
            assert await book.delete(jobs[1].id, "")
            disk(monkeypatch, spare.REPLIES.most + (1 << 20))
            await book.end(jobs[0].id, "", jobs[0].head, long, nothing)

    run(test())


def test_lines_leave_room_for_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(LineFiles(tmp_path / "output", tmp_path / "error")) as files:
        disk(monkeypatch, spare.REPLIES.most)
        with pytest.raises(StoreUnavailable, match="kept for deletions"):
            files.write([unanswered("a", "b", "c")])
        assert files.size == 0
