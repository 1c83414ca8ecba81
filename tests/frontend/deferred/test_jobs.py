"""Requests that are deferred, to models that answer by a script."""

from __future__ import annotations

import asyncio
import gc
import gzip
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import InvalidKey, Overloaded, ServiceUnavailable, WorkerDied
from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.deferred.accepting import Uncancelled
from msx_frontend.deferred.book import Also, JobBook
from msx_frontend.deferred.callbacks.callbacks import Callbacks
from msx_frontend.deferred.records import JobHead, LateReply, decode_head
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import DAY
from msx_frontend.store.store import Store
from msx_net.keys import ClientKey
from tests.frontend.generation.speaker import Speaker, say, say_so_far, words
from tests.frontend.keys.some import some_key
from tests.loops import run, until
from tests.net.http.client import Exchange, FakeAccessLog
from tests.net.http.exchanges import exchange_of
from tests.phrases import worker_died

PATH = "/v1/completions"
ASKED = {"prompt": "hi"}
SECRET = "Bearer ann-has-a-secret"
KEYS = {SECRET: some_key("ann"), "Bearer bob": some_key("bob")}


class Served:
    def __init__(self, speaker: Speaker, runner: DeferredJobs, store: Store) -> None:
        self.speaker, self.runner, self.store = speaker, runner, store

    async def defer(self, body: Any = ASKED, status: int = 202, path: str = PATH, **headers: str) -> str:
        """The id of the job."""
        exchange = await self.post(body, path, **headers)
        assert exchange.status == status, exchange.body
        return str(exchange.json["id"]) if status == 202 else exchange.body.decode()

    async def post(self, body: Any = ASKED, path: str = PATH, **headers: str) -> Exchange:
        return await self.speaker.begin(path, body, **{"prefer": "respond-async", **headers}).finish()

    async def get(self, path: str, method: str = "GET", **headers: str) -> Exchange:
        return await self.speaker.begin(f"/jobs/{path}", None, method, **headers).finish()

    async def ended(self, id: str, **headers: str) -> Any:
        """How the job stands when it has ended."""
        status = (await self.get(f"{id}?wait=60", **headers)).json
        assert status["state"] in ("done", "cancelled"), status
        return status


def key_of(owner: str) -> ClientKey | None:
    if not owner:
        return None
    found = next((key for key in KEYS.values() if key.name == owner), None)
    if found is None:
        raise InvalidKey("The key was withdrawn.")
    return found


@asynccontextmanager
async def serving(
    folder: Path,
    *script: Any,
    begins: bool = True,
    at_once: int = 4,
    most: int = 100,
    size: int = 1 << 20,
    keeps: bool = False,
    callbacks: Callable[[Store], Callbacks] | None = None,
    **more: Any,
) -> AsyncIterator[Served]:
    store = Store(folder / "store.db")
    told = None if callbacks is None else callbacks(store)
    runner = DeferredJobs(JobBook(store, 1.0, most, size), at_once, 10_000, key_of, told)
    kept = KeptResponses(store, 30, 1 << 20, 10_000) if keeps else None
    speaker = Speaker(list(script), jobs_of=runner, kept=kept, **more)
    if begins:
        await runner.begin(speaker.app.direct())
    try:
        yield Served(speaker, runner, store)
    finally:
        await runner.close()
        store.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.deferred.tries.AGAIN_AFTER", 0.0)


def test_a_reply_comes_later_as_it_would_have_been(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            now = await served.speaker.ask(PATH, ASKED)
            accepted = await served.post()
            id = accepted.json["id"]
            assert (accepted.status, accepted.headers["preference-applied"]) == (202, "respond-async")
            assert accepted.headers["location"] == f"/jobs/{id}"
            status = await served.ended(id)
            assert (status["path"], status["status"], status["place"]) == (PATH, 200, 0)
            assert status["created"] <= status["started"] <= status["ended"] < status["expires"]
            later = await served.get(f"{id}/result")
            assert (later.status, later.headers["content-type"]) == (200, now.headers["content-type"])
            assert {**later.json, "id": "", "created": 0} == {**now.json, "id": "", "created": 0}
            assert (f"POST {PATH}", 202) in served.speaker.log.lines
            assert (f"POST {PATH}", 200) in served.speaker.log.lines

    run(test())


def test_a_refusal_is_a_reply_too(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            id = await served.defer({"prompt": 3})
            assert (await served.ended(id))["status"] == 400
            later = await served.get(f"{id}/result")
            assert (later.status, later.json["error"]["param"]) == (400, "prompt")

    run(test())


def test_a_job_that_has_not_ended(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, at_once=1) as served:
            ids = [await served.defer() for _ in range(3)]
            await served.speaker.next_job()
            states = [(await served.get(id)).json for id in ids]
            assert [(one["state"], one["place"]) for one in states] == [("running", 0), ("queued", 0), ("queued", 1)]
            early = await served.get(f"{ids[0]}/result")
            assert (early.status, early.headers["retry-after"], early.json["state"]) == (202, "1", "running")
            assert (await served.get(f"{ids[0]}?wait=0.001")).json["state"] == "running"

    run(test())


def test_keys_take_turns(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, at_once=1, check_token=lambda given: KEYS[given or ""]) as served:
            for number in range(20):
                await served.defer({"prompt": f"ann {number}"}, authorization=SECRET)
            id = await served.defer({"prompt": "bob"}, authorization="Bearer bob")
            assert (await served.get(id, authorization="Bearer bob")).json["place"] == 1
            for number in range(3):
                say(await served.speaker.next_job(number), *words("a"))
            assert [one.prompt for one in served.speaker.asked] == ["ann 0", "ann 1", "bob"]

    run(test())


def test_events_come_while_it_runs_and_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.defer({**ASKED, "stream": True})
            job = await served.speaker.next_job()
            live = served.speaker.begin(f"/jobs/{id}/events", None, "GET")
            first, *rest = words("a", "b")
            say_so_far(job, first)
            await live.until_chunks(1)
            assert b'"text":"a"' in live.body
            first_id, _, rest_of_it = live.body.partition(b"\n")
            assert first_id.endswith(b"-1")
            assert rest_of_it.startswith(b"data: {")
            say(job, *rest)
            await live.finish()
            await served.ended(id)
            again = await served.get(f"{id}/events")
            assert again.body == live.body
            assert again.headers["content-type"].startswith("text/event-stream")
            assert again.body.endswith(b"data: [DONE]\n\n")
            behind = await served.get(f"{id}/events", last_event_id=first_id.removeprefix(b"id: ").decode())
            assert behind.body == again.body[again.body.index(b"\n\n") + 2 :]
            result = await served.get(f"{id}/result")
            assert b"id: " not in result.body
            assert result.body.count(b"\n\n") == again.body.count(b"\n\n")

    run(test())


def test_a_stream_that_fails_ends_with_its_error(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.defer({**ASKED, "stream": True})
            for number in range(3):
                say_so_far(await served.speaker.next_job(number), words("a")[0], WorkerDied("it did"))
            await served.ended(id)
            told = f'data: {{"error":{{"message":"{worker_died("it did")}"'
            assert told.encode() in (await served.get(f"{id}/events")).body

    run(test())


def test_a_stream_of_another_run_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.defer({**ASKED, "stream": True})
            live = served.speaker.begin(f"/jobs/{id}/events", None, "GET")
            say_so_far(job := await served.speaker.next_job(), words("a")[0])
            await live.until_chunks(1)
            first_id = live.body.partition(b"\n")[0].removeprefix(b"id: ").decode()
            say_so_far(job, WorkerDied("it did"))
            say(await served.speaker.next_job(1), *words("b"))
            told = (await live.finish()).body
            assert told.count(b"\n\n") == 2
            assert b"The job runs again from its beginning: ask for its events without Last-Event-ID." in told
            await served.ended(id)
            refused = await served.get(f"{id}/events", last_event_id=first_id)
            assert (refused.status, "runs again" in refused.json["message"]) == (409, True)
            assert b'"text":"b"' in (await served.get(f"{id}/events")).body

    run(test())


def test_a_whole_reply_has_no_events_while_it_runs(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.defer()
            early = served.speaker.begin(f"/jobs/{id}/events", None, "GET")
            say(await served.speaker.next_job(), *words("a"))
            assert (await early.finish()).status == 400

    run(test())


def test_a_whole_reply_has_no_events(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            id = await served.defer()
            await served.ended(id)
            refused = await served.get(f"{id}/events")
            assert (refused.status, refused.json["message"]) == (
                400,
                "The reply of this job is not a stream of events: ask for its result.",
            )

    run(test())


def test_a_job_outlives_the_server(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as first:
            ids = [await first.defer({"prompt": f"{number}"}) for number in range(3)]
        async with serving(tmp_path, at_once=1) as second:
            say(await second.speaker.next_job(0), *words("a"))
            await second.speaker.next_job(1)  # it runs when the server ends
        async with serving(tmp_path, words("b")) as third:
            for id in ids:
                assert (await third.ended(id))["status"] == 200
            assert [one.prompt for one in third.speaker.asked] == ["1", "2"]
            assert (await third.get(f"{ids[0]}/result")).json["choices"][0]["text"] == "a"

    run(test())


def test_a_pause_starts_no_further_jobs(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, at_once=1) as served:
            first, second = await served.defer(), await served.defer()
            job = await served.speaker.next_job()
            waits = [served.speaker.begin(f"/jobs/{second}{more}", None, "GET") for more in ("?wait=60", "/events")]
            await asyncio.sleep(0)
            served.runner.pause()
            shown, refused = [await one.finish() for one in waits]
            assert (shown.json["state"], refused.status) == ("queued", 503)
            assert served.runner.is_busy
            say(job, *words("a"))
            assert (await served.ended(first))["status"] == 200
            assert not served.runner.is_busy
            assert (await served.get(second)).json["state"] == "queued"
        async with serving(tmp_path, words("b")) as after:
            assert (await after.ended(second))["status"] == 200

    run(test())


def test_a_job_that_is_accepted_during_the_start_runs_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a"), begins=False) as served:
            await served.defer({"prompt": "first"})
            await served.runner.begin(served.speaker.app.direct())
            await served.ended(await served.defer({"prompt": "second"}))
            assert [one.prompt for one in served.speaker.asked] == ["first", "second"]

    run(test())


def test_a_job_without_room_is_tried_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a"), refusal=Overloaded("full")) as served:
            id = await served.defer()
            entry = served.runner.find(id, "")
            assert entry is not None
            while entry.tries.in_vain < 3:
                await asyncio.sleep(0.001)
            assert (await served.get(f"{id}/result")).status == 202
            served.speaker.refusal = None
            assert (await served.ended(id))["status"] == 200

    run(test())


def test_a_job_that_ends_workers_is_not_tried_for_ever(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, [WorkerDied("it did")]) as served:
            id = await served.defer()
            assert (await served.ended(id))["status"] == 503
            assert len(served.speaker.jobs) == 3
            assert (await served.get(f"{id}/result")).json["error"]["message"] == worker_died("it did")

    run(test())


def test_a_job_that_found_no_room_may_end_as_many_workers(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, [WorkerDied("it did")], refusal=Overloaded("full")) as served:
            id = await served.defer()
            entry = served.runner.find(id, "")
            assert entry is not None
            while entry.tries.in_vain < 3:
                await asyncio.sleep(0.001)
            served.speaker.refusal = None
            assert (await served.ended(id))["status"] == 503
            assert entry.tries.deaths == 3

    run(test())


def test_a_job_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, at_once=1) as served:
            running, queued = await served.defer(), await served.defer()
            job = await served.speaker.next_job()
            for id in (queued, running):
                assert (await served.get(id, "DELETE")).json == {"id": id, "state": "cancelled"}
                assert (await served.get(id)).json["state"] == "cancelled"
                gone = await served.get(f"{id}/result")
                assert (gone.status, gone.json["message"]) == (410, "The job was cancelled.")
            assert job.done
            third = await served.defer()
            say(await served.speaker.next_job(1), *words("a"))
            assert (await served.ended(third))["status"] == 200
            assert (await served.get(third, "DELETE")).json["state"] == "forgotten"
            assert (await served.get(third)).status == 404

    run(test())


def test_a_job_that_is_cancelled_gives_its_turn_to_another(tmp_path: Path) -> None:
    """Also where nothing tells its sink that it has ended."""

    async def test() -> None:
        async with serving(tmp_path, at_once=1) as served:
            id = await served.defer()
            await served.speaker.next_job()
            entry = served.runner.find(id, "")
            assert entry is not None
            assert entry.sink is not None
            entry.sink.job = Uncancelled()
            await served.get(id, "DELETE")
            await served.defer()
            await served.speaker.next_job(1)

    run(test())


@pytest.mark.parametrize("refused", [False, True])
def test_a_reply_that_comes_while_its_job_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Is kept where the cancellation is refused."""

    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.defer()
            job, end = await served.speaker.next_job(), served.runner.book.end
            began, goes_on = asyncio.Event(), asyncio.Event()

            async def end_late(id: str, owner: str, head: JobHead, reply: LateReply | None, also: Also) -> JobHead:
                if reply is None:
                    began.set()
                    await goes_on.wait()
                    if refused:
                        raise StoreUnavailable("full")
                return await end(id, owner, head, reply, also)

            monkeypatch.setattr(served.runner.book, "end", end_late)
            cancelled = served.speaker.begin(f"/jobs/{id}", None, "DELETE")
            await began.wait()
            say(job, *words("a"))
            assert (await served.get(id)).json["state"] == "running"
            goes_on.set()
            assert (await cancelled.finish()).status == (503 if refused else 200)
            assert (await served.ended(id))["state"] == ("done" if refused else "cancelled")
            assert (await served.get(f"{id}/result")).status == (200 if refused else 410)

    run(test())


def test_a_job_that_another_server_cancelled_stays_so(tmp_path: Path) -> None:
    """Whether its reply comes here, or it is cancelled here as well."""

    async def test() -> None:
        async with serving(tmp_path, at_once=2) as served:
            ids = [await served.defer() for _ in range(2)]
            replied = await served.speaker.next_job(0)
            await served.speaker.next_job(1)
            for id in ids:
                head = JobHead(PATH, state="cancelled", status=499)
                await served.runner.book.end(id, "", head, None, lambda records, kept: None)
            say(replied, *words("a"))
            entry = served.runner.find(ids[1], "")
            assert entry is not None
            assert not await served.runner.cancel(entry)
            await until(lambda: not served.runner.is_busy)
            for id in ids:
                assert served.runner.find(id, "") is None
                assert (await served.get(id)).json["state"] == "cancelled"

    run(test())


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_job_that_another_server_cancelled_while_it_waited_here(tmp_path: Path, forgotten: bool) -> None:
    """Its turn comes, and finds no request."""

    async def test() -> None:
        async with serving(tmp_path, at_once=1) as served:
            await served.defer()
            first = await served.speaker.next_job(0)
            id = await served.defer()
            head = JobHead(PATH, state="cancelled", status=499)
            await served.runner.book.end(id, "", head, None, lambda records, kept: None)
            if forgotten:
                await served.runner.book.delete(id, "")
            entry = served.runner.find(id, "")
            assert entry is not None
            say(first, *words("a"))
            await until(lambda: not entry.is_open)
            assert served.runner.find(id, "") is None
            assert served.runner.figures().queued == 0
            assert (await served.get(id)).status == (404 if forgotten else 200)

    run(test())


def test_an_end_that_fails_keeps_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*values: Any) -> None:
        raise RuntimeError("surprise")

    async def test() -> None:
        async with serving(tmp_path, words("a"), at_once=1) as served:
            monkeypatch.setattr(served.runner.book, "end", fails)
            id = await served.defer()
            await until(lambda: served.runner.find(id, "") is None)
            assert not served.runner.is_busy

    run(test())


def test_a_job_is_cancelled_whose_client_leaves(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as served:
            entry = served.runner.find(await served.defer(), "")
            assert entry is not None
            asked = asyncio.ensure_future(served.runner.cancel(entry))
            await asyncio.sleep(0)
            asked.cancel()
            assert (await served.ended(entry.id))["state"] == "cancelled"
            assert served.runner.find(entry.id, "") is None

    run(test())


def test_a_job_whose_route_is_gone_fails(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as first:
            id = await first.defer()
        async with serving(tmp_path, begins=False) as second:
            await second.runner.begin(exchange_of(log=FakeAccessLog()).direct())
            assert (await second.ended(id))["status"] == 404
            assert "No model answers /v1/completions any more." in (await second.get(f"{id}/result")).body.decode()

    run(test())


def test_a_job_is_its_keys(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a"), check_token=lambda given: KEYS[given or ""]) as served:
            id = await served.defer(authorization=SECRET)
            await served.ended(id, authorization=SECRET)
            for path, method in ((id, "GET"), (f"{id}/result", "GET"), (f"{id}/events", "GET"), (id, "DELETE")):
                assert (await served.get(path, method, authorization="Bearer bob")).status == 404
            assert (await served.get(f"{id}/result", authorization=SECRET)).status == 200
        assert b"has-a-secret" not in (tmp_path / "store.db").read_bytes()

    run(test())


def test_a_job_of_a_key_that_was_withdrawn_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        keys = {SECRET: some_key("gone")}
        async with serving(tmp_path, words("a"), check_token=lambda given: keys[given or ""]) as served:
            id = await served.defer(authorization=SECRET)
            assert (await served.ended(id, authorization=SECRET))["status"] == 401
            assert served.speaker.jobs == []

    run(test())


def test_the_same_idempotency_key_is_the_same_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            first = await served.defer(idempotency_key="k")
            assert await served.defer(idempotency_key="k") == first
            await served.ended(first)
            assert await served.defer(idempotency_key="k") == first
            assert await served.defer(idempotency_key="other") != first
            other = "/openai" + PATH
            assert await served.defer(path=other, idempotency_key="k") != first
            refused = await served.post({"prompt": "other"}, idempotency_key="k")
            assert refused.status == 422
            assert "was sent with another body before" in refused.body.decode()
            assert (await served.post(idempotency_key="k" * 256)).status == 400
            assert len(served.speaker.jobs) == 3

    run(test())


def test_an_idempotency_key_in_flight_is_a_conflict(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            exchanges = await asyncio.gather(*(served.post(idempotency_key="k") for _ in range(2)))
            assert sorted(one.status for one in exchanges) == [202, 409]

    run(test())


def test_a_full_store_refuses(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False, most=1) as served:
            await served.defer()
            assert "The store is full" in await served.defer(status=503)
        async with serving(tmp_path, words("a")) as again:
            assert [await again.ended(one.id) for one in [*again.runner._entries.values()]]

    run(test())


def test_a_reply_without_room_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a" * 2000), words("b"), size=5000) as served:
            ids = [await served.defer(), await served.defer()]
            assert [(await served.ended(id))["status"] for id in ids] == [200, 200]
        async with serving(tmp_path, words("a" * 2000), size=5000) as served:
            id = await served.defer()
            assert (await served.ended(id))["status"] == 507
            late = await served.get(f"{id}/result")
            assert late.status == 507
            assert "is not kept: all jobs take at most 5000 bytes (jobs_size)" in late.json["error"]["message"]
            assert not served.runner.is_busy
            assert (await served.get(ids[0], "DELETE")).status == 200
            id = await served.defer()
            assert (await served.ended(id))["status"] == 200

    run(test())


def test_a_packed_body_is_kept_as_it_is_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            packed = gzip.compress(msgspec.json.encode(ASKED))
            id = await served.defer(packed, content_encoding="gzip")
            assert (await served.ended(id))["status"] == 200

    run(test())


def test_unknown_and_old_jobs(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            for id in ("x", "job_zzzzzzzz" + 32 * "0", f"job_ffffffff{32 * '0'}"):
                assert (await served.get(id)).status == 404
                assert (await served.get(f"{id}/result")).status == 404
            old = await served.get(f"job_00000001{32 * '0'}/result")
            assert (old.status, old.json["message"]) == (410, "The reply of the job was kept for 1 days (jobs_days).")
            for wait in ("-1", "61", "x", "nan"):
                assert (await served.get(f"x?wait={wait}")).status == 400
            assert (await served.get("x/events", last_event_id="x")).status == 400

    run(test())


@pytest.mark.parametrize("prefer", ["", "wait=10", "respond-asynchronously"])
def test_other_preferences_change_nothing(tmp_path: Path, prefer: str) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            exchange = await served.speaker.ask(PATH, ASKED, prefer=prefer)
            assert exchange.status == 200

    run(test())


def test_without_jobs_prefer_has_no_effect() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        exchange = await speaker.ask(PATH, ASKED, prefer="respond-async, wait=5")
        assert (exchange.status, exchange.headers.get("preference-applied")) == (200, None)
        for path in ("x", "x/result", "x/events"):
            refused = await speaker.ask(f"/jobs/{path}", None, "GET")
            assert (refused.status, "jobs=true" in refused.json["message"]) == (404, True)

    run(test())


def test_a_job_waits_for_its_models_days_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as first:
            id = await first.defer()
        monkeypatch.setattr("msx_frontend.deferred.runner.DAY", -DAY)
        async with serving(tmp_path, words("a")) as second:
            assert (await second.ended(id))["status"] == 504
            assert second.speaker.jobs == []

    run(test())


def test_many_open_jobs_are_read_in_parts_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And once each, however often the server looks what the one before it does."""
    monkeypatch.setattr("msx_frontend.deferred.book.AT_ONCE", 2)
    threads: list[str] = []
    collects: set[bool] = set()

    def decode(head: bytes) -> JobHead:
        threads.append(threading.current_thread().name)
        collects.add(gc.isenabled())
        return decode_head(head)

    async def test() -> None:
        async with serving(tmp_path, begins=False) as served:
            made = [await served.defer() for _ in range(5)]
            monkeypatch.setattr("msx_frontend.deferred.book.decode_head", decode)
            next_one = DeferredJobs(JobBook(served.store, 1.0, 100, 1 << 20), 0, 10_000, key_of)
            await next_one.begin(served.speaker.app.direct(), made[:1])
            assert threads == ["msx-store"] * 5
            assert (collects, gc.isenabled()) == ({False}, True)
            made.append(await served.defer())
            threads.clear()
            await next_one.look_elsewhere(over=False)
            assert all(next_one.find(id, "") for id in made)
            assert threads == ["msx-store"] * 2, "of the one that runs elsewhere, and of the one that came"
            threads.clear()
            assert len(await next_one.book.newest("", "", 10)) == 6
            assert threads == ["msx-store"] * 6
            await next_one.close()

    run(test())


def test_jobs_that_the_server_before_runs_are_left_to_it(tmp_path: Path) -> None:
    """Until it has ended: then those that it has not ended run here."""

    async def test() -> None:
        async with serving(tmp_path, words("a"), begins=False) as served:
            ended, open_still = await served.defer(), await served.defer()
            next_one = DeferredJobs(JobBook(served.store, 1.0, 100, 1 << 20), 4, 10_000, key_of)
            await next_one.begin(served.speaker.app.direct(), [ended, open_still])
            accepted_later = await served.defer()
            assert set(next_one.running) == {ended, open_still}
            assert next_one.figures().running >= 2
            entry = next_one.find(ended, "")
            assert entry is not None
            head, reply = JobHead(PATH, state="done", status=200), LateReply(200, [], b"a")
            await served.runner.book.end(ended, "", head, reply, lambda records, kept: None)
            await next_one.look_elsewhere(over=False)
            assert (next_one.find(ended, ""), entry.head.state) == (None, "done")
            assert open_still in next_one.running
            left = next_one.find(open_still, "")
            assert left is not None
            with pytest.raises(ServiceUnavailable, match="runs the job until the upgrade is over: ask again"):
                await next_one.cancel(left)
            await next_one.look_elsewhere(over=True)
            for id in (open_still, accepted_later):
                while (found := next_one.find(id, "")) is not None:
                    await next_one.wait(found)
                late = await next_one.book.answered(id, "")
                assert late is not None
                assert late.reply is not None
                assert late.reply.status == 200
            await next_one.close()

    run(test())
