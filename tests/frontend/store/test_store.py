from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from msx_frontend.store.errors import StoreError, StoreUnavailable
from msx_frontend.store.records import OVERHEAD, Bounds, Record
from msx_frontend.store.store import Answered, Store, StoreCall
from tests.loops import run

BOUNDS = Bounds(100, 1 << 20, "some_size")


def record(id: str, owner: str = "ann", expires: float = 100.0, kind: str = "note") -> Record:
    return Record(kind=kind, id=id, owner=owner, created=1.0, expires=expires)


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    made = Store(tmp_path / "store.db", clock)
    yield made
    made.close()


def limit(store: Store) -> None:
    """The disk has no room for more than is there."""
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")


def test_what_was_added_is_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def add() -> None:
        await first.add(record("a", expires=1e12), {"one": b"1", "two": b"2"}, BOUNDS)

    first = Store(path)
    run(add())
    second = Store(path)
    assert run(second.parts("note", "a", "ann", ["two", "one", "none"])) == [b"2", b"1", b""]
    first.close()
    second.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_record_is_its_owners(store: Store) -> None:
    async def test() -> None:
        await store.add(record("a"), {"one": b"1"}, BOUNDS)
        assert await store.find("note", "a", "bob") is None
        assert await store.parts("note", "a", "bob", ["one"]) is None
        assert not await store.delete("note", "a", "bob")
        assert await store.find("note", "a", "ann") == record("a")
        assert await store.delete("note", "a", "ann")
        assert await store.find("note", "a", "ann") is None
        assert await store.totals() == {}

    run(test())


def test_what_has_expired_is_gone_and_swept(store: Store, clock: Clock) -> None:
    async def test() -> None:
        await store.add(record("old", expires=20.0), {"one": b"1"}, BOUNDS)
        await store.add(record("new", expires=40.0), {}, BOUNDS)
        clock.now = 30.0
        assert await store.find("note", "old", "ann") is None
        assert (await store.totals())["note"][0] == 2
        assert await store.sweep() == 1
        assert await store.totals() == {"note": (1, OVERHEAD)}

    run(test())


def test_a_sweep_goes_on_until_nothing_has_expired(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(store: Store) -> None:
        for number in range(10):
            await store.add(record(f"{number}", expires=20.0), {}, BOUNDS)
        clock.now = 30.0
        store._sweep_at = 0.0  # it is time, once
        while await store.totals():
            await asyncio.sleep(0)

    monkeypatch.setattr("msx_frontend.store.records.AT_ONCE", 4)
    monkeypatch.setattr("msx_frontend.store.store.AT_ONCE", 4)
    store = Store(tmp_path / "store.db", clock)
    run(test(store))
    store.close()


def test_what_has_expired_takes_no_room(store: Store, clock: Clock) -> None:
    async def test() -> None:
        clock.now = 0.0  # no sweep removes it
        few = Bounds(2, 1 << 20, "some_count")
        await store.add(record("old", expires=0.5), {}, few)
        await store.add(record("a"), {}, few)
        await store.add(record("b"), {}, few)
        with pytest.raises(StoreUnavailable):
            await store.add(record("c"), {}, few)
        assert await store.totals() == {"note": (2, 2 * OVERHEAD)}

    run(test())


def test_a_full_store_refuses(store: Store) -> None:
    async def test() -> None:
        few = Bounds(2, 1 << 20, "some_count")
        await store.add(record("a"), {}, few)
        await store.add(record("b"), {}, few)
        with pytest.raises(StoreUnavailable, match="The store is full: it takes 2 records of"):
            await store.add(record("c"), {}, few)
        await store.add(record("a", kind="other"), {}, few)
        small = Bounds(100, 3 * OVERHEAD, "some_size")
        with pytest.raises(StoreUnavailable, match=f"A record of {3 * OVERHEAD + 1} bytes is larger than all may be: "):
            await store.add(record("c"), {"one": bytes(2 * OVERHEAD + 1)}, small)

    run(test())


def test_a_full_store_drops_the_oldest_of_who_has_most(store: Store) -> None:
    async def test() -> None:
        few = Bounds(3, 1 << 20, "some_count", drops_oldest=True)
        await store.add(record("bob's", "bob"), {}, few)
        for id in "abc":
            await store.add(record(id), {"one": b"1"}, few)
        found = [id for id, owner in (("bob's", "bob"), ("a", "ann"), ("b", "ann"), ("c", "ann"))]
        owners = {"bob's": "bob"}
        kept = [id for id in found if await store.find("note", id, owners.get(id, "ann"))]
        assert kept == ["bob's", "b", "c"]
        by_size = Bounds(100, 4 * OVERHEAD + 2, "some_size", drops_oldest=True)
        await store.add(record("d"), {"one": bytes(2 * OVERHEAD)}, by_size)
        assert await store.find("note", "bob's", "bob") is not None
        assert await store.find("note", "b", "ann") is None

    run(test())


def test_a_full_disk_refuses_and_loses_nothing(store: Store, tmp_path: Path) -> None:
    async def test() -> None:
        await store.add(record("kept"), {"one": b"1"}, BOUNDS)
        limit(store)
        large, small = {"one": bytes(100_000)}, {"one": b"2"}
        calls: list[Awaitable[None]] = [
            store.add(record("large"), large, BOUNDS),
            store.add(record("small"), small, BOUNDS),
        ]
        refused, taken = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(refused, StoreUnavailable)
        assert str(refused).startswith(f"{tmp_path / 'store.db'} cannot take another record: its disk has ")
        assert refused.status == 503
        assert taken is None
        assert await store.parts("note", "kept", "ann", ["one"]) == [b"1"]
        assert await store.parts("note", "small", "ann", ["one"]) == [b"2"]
        assert await store.find("note", "large", "ann") is None

    run(test())


def test_calls_that_come_together_share_a_write(store: Store) -> None:
    async def test() -> None:
        said: list[str] = []
        store._db.set_trace_callback(said.append)
        await asyncio.gather(*(store.add(record(f"{n}"), {}, Bounds(1000, 1 << 20, "k")) for n in range(200)))
        assert 1 <= said.count("COMMIT") < 100

    run(test())


def test_a_list_goes_on_where_its_last_record_is_gone(store: Store) -> None:
    async def behind(id: str, made_before: float) -> list[str]:
        found = await store.run(lambda records: records.newest("note", None, id, 10, (0.0, 100.0), made_before))
        return [one.id for one in found]

    async def test() -> None:
        for id, created in (("set-back", 9.0), ("a", 1.0), ("b", 2.0), ("c", 3.0)):
            await store.add(structs.replace(record(id), created=created), {}, BOUNDS)
        assert await behind("b", 0.0) == ["a", "set-back"]
        assert await behind("gone", 3.0) == ["b", "a", "set-back"], "whatever the clock said of them"
        assert await behind("gone", 1.0) == []

    run(test())


def test_calls_wait_together_for_another_program(store: Store) -> None:
    said: list[str] = []
    found: list[Answered] = []
    store._db.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store._db.set_trace_callback(said.append)
        store._answer([StoreCall(lambda records: records.totals(), found.append)] * 20)
    assert said.count("BEGIN IMMEDIATE") == 1
    assert ["is locked" in str(one.error) for one in found] == [True] * 20
    assert run(store.totals()) == {}


def test_too_many_calls_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.store.store.MOST_WAITING", 0)
    with pytest.raises(StoreUnavailable, match="has 0 calls waiting"):
        run(store.totals())


def test_a_bug_fails_its_call_alone(store: Store) -> None:
    async def test() -> None:
        with pytest.raises(ZeroDivisionError):
            await store.run(lambda _: 1 // 0)
        await store.add(record("a"), {}, BOUNDS)

    run(test())


def test_a_call_after_the_close_is_refused(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable):
        run(store.totals())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    path.write_bytes(b"no database" * 500)


def strip(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE other (a)").connection.close()


@pytest.mark.parametrize("harm", [cut, garble, strip])
def test_a_damaged_file_is_told(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "store.db"

    async def fill(store: Store) -> None:
        for number in range(50):
            await store.add(record(f"{number}"), {"one": bytes(3000)}, BOUNDS)

    store = Store(path)
    run(fill(store))
    store.close()
    harm(path)
    with pytest.raises(StoreError, match=r"store.db is damaged \(.+\): put a backup in its place, or remove it"):
        Store(path)


def test_a_file_of_a_newer_server_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="was written by a newer MSX"):
        Store(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the store cannot be opened: No such file"):
        Store(tmp_path / "none" / "store.db")
