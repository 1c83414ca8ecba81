"""Idempotency-Keys on the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from msx_frontend.deferred.book import Accepted, JobBook, WantedJob
from msx_frontend.deferred.records import Deferred, LateReply, body_digest
from msx_frontend.store.records import Records
from msx_frontend.store.store import Store
from tests.loops import run

MOST = 3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


def nothing(records: Records, expires: float) -> None:
    pass


async def accept(book: JobBook, key: str = "k") -> Accepted:
    return await book.accept(Deferred(b"/p", [], b"x"), WantedJob("/p", "ann", key))


def test_an_idempotency_key_is_forgotten_with_its_job(store: Store) -> None:
    async def test() -> None:
        book = JobBook(store, 1.0, MOST, 1 << 20)
        for number in range(MOST + 1):
            accepted = await accept(book, f"{number}")
            assert not await book.delete(accepted.job.id, "bob")
            assert await book.delete(accepted.job.id, "ann")
        assert await store.totals() == {}

    run(test())


def test_an_idempotency_key_is_kept_as_long_as_its_job(store: Store) -> None:
    async def test() -> None:
        book = JobBook(store, 0.0, MOST, 1 << 20)  # an end is the end of its record, too
        first = await accept(book)
        assert await accept(book) == Accepted(first.job, is_new=False)
        await book.end(first.job.id, "ann", first.job.head, LateReply(200, [], b"ok"), nothing)
        second = await accept(book)
        assert second.is_new
        assert not await book.delete(first.job.id, "ann")
        assert await accept(book) == Accepted(second.job, is_new=False)
        await book.end(second.job.id, "ann", second.job.head, None, nothing)
        await store.sweep()
        assert await store.totals() == {}

    run(test())


def test_a_body_is_hashed_beside_the_loop_and_for_a_key_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def digest(body: bytes) -> bytes:
        threads.append(threading.current_thread().name)
        return body_digest(body)

    monkeypatch.setattr("msx_frontend.deferred.book.body_digest", digest)

    async def test() -> None:
        book = JobBook(store, 1.0, MOST, 1 << 20)
        await accept(book, "")
        assert threads == []
        await accept(book)
        assert threads == ["msx-store"]

    run(test())


def test_the_first_end_of_two_servers_stays(store: Store) -> None:
    async def test() -> None:
        book, told = JobBook(store, 1.0, MOST, 1 << 20), list[float]()
        job = (await accept(book)).job
        for state, reply in (("cancelled", None), ("done", LateReply(200, [], b"ok"))):
            head = structs.replace(job.head, state=state)
            stands = await book.end(job.id, "ann", head, reply, lambda records, expires: told.append(expires))
            assert stands.state == "cancelled"
        answered = await book.answered(job.id, "ann")
        assert answered is not None
        assert (len(told), answered.job.head.state, answered.reply) == (1, "cancelled", None)
        await book.delete(job.id, "ann")
        await book.end(
            job.id, "ann", job.head, LateReply(200, [], b"ok"), lambda records, expires: told.append(expires)
        )
        assert (len(told), await store.totals()) == (1, {})

    run(test())
