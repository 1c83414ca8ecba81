"""Callbacks of jobs: told once they have ended, again until they are taken, also by the next server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.deferred.book import JobBook
from msx_frontend.deferred.callbacks import callbacks as module
from msx_frontend.deferred.callbacks import lanes, schedule
from msx_frontend.deferred.callbacks.callbacks import Callbacks
from msx_frontend.deferred.callbacks.records import write_try
from msx_frontend.deferred.callbacks.sender import CallbackAnswer
from msx_frontend.deferred.records import CALLBACK
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import DAY
from msx_frontend.store.store import Store
from msx_net.outgoing.allowed import AllowedHosts
from tests.frontend.deferred.test_jobs import KEYS, SECRET, Served, key_of, serving
from tests.frontend.generation.speaker import words
from tests.loops import run, until

URL = "https://hooks.example/jobs?of=me"


class FakeSender:
    """`answers`: of the next tries, the last of them of all further ones; an Event is waited for first."""

    def __init__(self, *answers: CallbackAnswer | asyncio.Event) -> None:
        self.answers = list(answers or [CallbackAnswer(200)])
        self.sent: list[tuple[str, str, Any]] = []

    async def send(self, id: str, url: str, body: bytes) -> CallbackAnswer:
        self.sent.append((id, url, json.loads(body)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            answer = CallbackAnswer(200)
        return answer

    def close(self) -> None:
        pass


@asynccontextmanager
async def calling(
    folder: Path, sender: FakeSender, *script: Any, most: int = 100, **more: Any
) -> AsyncIterator[Served]:
    def callbacks(store: Store) -> Callbacks:
        return Callbacks(store, sender, AllowedHosts(["*.example"]), most)  # type: ignore[arg-type]

    async with serving(folder, *(script or (words("a"),)), callbacks=callbacks, **more) as served:
        yield served


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "FIRST", 0.0)
    monkeypatch.setattr("msx_frontend.deferred.tries.AGAIN_AFTER", 0.0)


def callbacks_of(served: Served) -> Callbacks:
    assert isinstance(served.runner.callbacks, Callbacks)
    return served.runner.callbacks


async def delivery(served: Served, id: str) -> Any:
    await until(lambda: not callbacks_of(served).waiting)
    return (await served.get(id)).json["callback"]


def test_a_url_is_told_of_the_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender()) as served:
            id = await served.defer(x_msx_callback=URL)
            status = await served.ended(id)
            assert await delivery(served, id) == {
                "url": URL, "state": "delivered", "tries": 1, "next": None, "status": 200, "error": None,
            }  # fmt: skip
            ((message, url, told),) = sender.sent
            assert (message, url, told["type"]) == (f"msg_{id}", URL, "job.completed")
            assert told["timestamp"].endswith("Z")
            known = {name: status[name] for name in ("id", "path", "state", "status", "created", "started", "ended")}
            assert {**told["data"], "expires": 0} == {**known, "expires": 0, "result": f"/jobs/{id}/result"}
            assert (await served.get(f"{id}/result")).status == 200
            assert b"hooks.example" not in (await served.get(f"{id}/result")).body
            assert (await served.store.totals()).get(CALLBACK) is None

    run(test())


def test_a_response_in_the_background_calls_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(), keeps=True) as served:
            body = {"input": "hi", "background": True}
            asked = served.speaker.begin("/v1/responses", body, x_msx_callback=URL)
            id = (await asked.finish()).json["id"]
            await until(lambda: sender.sent)
            assert sender.sent[0][2]["data"]["id"] == id.removeprefix("resp_")
            refused = await served.speaker.begin("/v1/responses", body, x_msx_callback="https://other.org").finish()
            assert (refused.status, "is not in callback_hosts" in refused.body.decode()) == (400, True)

    run(test())


def test_failures_and_cancellations_are_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(), begins=False) as served:
            failed = await served.defer({"prompt": 3}, x_msx_callback=URL)
            cancelled = await served.defer(x_msx_callback=URL)
            await served.get(cancelled, "DELETE")
            await served.runner.begin(served.speaker.app.direct())
            await until(lambda: len(sender.sent) == 2)
            types = {told["data"]["id"]: told["type"] for _, _, told in sender.sent}
            assert types == {failed: "job.failed", cancelled: "job.cancelled"}

    run(test())


def test_it_is_sent_again_until_it_is_taken(tmp_path: Path) -> None:
    async def test() -> None:
        refused = (
            CallbackAnswer(500),
            CallbackAnswer(None, "its host does not answer"),
            CallbackAnswer(302),
            CallbackAnswer(204),
        )
        async with calling(tmp_path, sender := FakeSender(*refused)) as served:
            id = await served.defer(x_msx_callback=URL)
            await until(lambda: len(sender.sent) == 4)
            found = await delivery(served, id)
            assert (found["state"], found["tries"], found["status"]) == ("delivered", 4, 204)
            assert callbacks_of(served).tries == {"retried": 3, "delivered": 1, "failed": 0}
            assert len({id for id, _, _ in sender.sent}) == 1

    run(test())


def test_a_callback_between_two_tries_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "FIRST", 100.0)

    async def test() -> None:
        async with calling(tmp_path, FakeSender(CallbackAnswer(None, "its host does not answer"))) as served:
            id = await served.defer(x_msx_callback=URL)
            assert (await served.get(id)).json["callback"]["state"] == "waiting"
            status = await served.ended(id)
            while not (found := (await served.get(id)).json["callback"])["tries"]:
                await asyncio.sleep(0.001)
            assert (found["state"], found["error"]) == ("waiting", "its host does not answer")
            assert 80 <= found["next"] - status["ended"] <= 130
            assert (await served.get(id, "DELETE")).json["state"] == "forgotten"
            assert (await served.store.totals()).get(CALLBACK) is None

    run(test())


@pytest.mark.parametrize("answer", [CallbackAnswer(410), CallbackAnswer(500)])
def test_it_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: CallbackAnswer) -> None:
    """At once where the receiver is gone, after a day where it only fails."""
    if answer.status != 410:
        monkeypatch.setattr(module, "LASTS", -1.0)

    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(answer)) as served:
            id = await served.defer(x_msx_callback=URL)
            await served.ended(id)
            found = await delivery(served, id)
            assert (found["state"], found["status"], len(sender.sent)) == ("failed", answer.status, 1)
            assert (await served.store.totals()).get(CALLBACK) is None

    run(test())


def test_the_next_server_sends_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with calling(tmp_path, first := FakeSender(asyncio.Event())) as served:
            running = await served.defer(x_msx_callback=URL)
            await until(lambda: first.sent)
            served.runner._at_once = 0
            open_job = await served.defer(x_msx_callback=URL)
        async with calling(tmp_path, second := FakeSender(CallbackAnswer(500))) as served:
            monkeypatch.setattr(schedule, "FIRST", 100.0)
            await until(lambda: len(second.sent) >= 2)
            assert {told["data"]["id"] for _, _, told in second.sent} == {running, open_job}
        later = time.time() + 3600
        monkeypatch.setattr("msx_frontend.deferred.callbacks.callbacks.time.time", lambda: later)
        async with calling(tmp_path, third := FakeSender()) as served:
            await until(lambda: len(third.sent) == 2)
            await until(lambda: not callbacks_of(served).waiting)

    run(test())


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_job_that_the_server_before_ends_is_told(tmp_path: Path, is_kept: bool) -> None:
    """Or gives its place back, where it was forgotten meanwhile."""

    async def test() -> None:
        async with calling(tmp_path, first := FakeSender(), begins=False) as served:
            id = await served.defer(x_msx_callback=URL)
            callbacks = Callbacks(served.store, sender := FakeSender(), AllowedHosts(["*.example"]), 100)  # type: ignore[arg-type]
            next_one = DeferredJobs(JobBook(served.store, 1.0, 100, 1 << 20), 4, 10_000, key_of, callbacks)
            await next_one.begin(served.speaker.app.direct(), [id])
            assert (await served.get(id, "DELETE")).json["state"] == "cancelled"
            if not is_kept:
                assert (await served.get(id, "DELETE")).json["state"] == "forgotten"
            await next_one.look_elsewhere(over=False)
            await until(lambda: not callbacks.waiting)
            assert [told["type"] for _, _, told in sender.sent] == ["job.cancelled"] * is_kept
            assert first.sent == []
            await next_one.close()

    run(test())


@pytest.mark.parametrize("answer", [CallbackAnswer(500), asyncio.Event()])
def test_a_job_that_is_forgotten_gives_its_callbacks_place_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: CallbackAnswer | asyncio.Event
) -> None:
    """At once: while the next try is far off, and while it waits for its turn or is sent."""
    tries = 4 if isinstance(answer, asyncio.Event) else 5
    monkeypatch.setattr(schedule, "FIRST", 1000.0)

    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(answer), most=5) as served:
            ids = [await served.defer(x_msx_callback=URL) for _ in range(5)]
            for id in ids:
                await served.ended(id)
            await until(lambda: len(sender.sent) == tries)
            for id in ids:
                assert (await served.get(id, "DELETE")).json["state"] == "forgotten"
            assert callbacks_of(served).waiting == 0
            if isinstance(answer, asyncio.Event):
                answer.set()
            await until(lambda: not callbacks_of(served)._running.total)
            assert not callbacks_of(served)._timers
            assert len(sender.sent) == tries

    run(test())


def test_an_unforeseen_error_loses_no_callback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class FailingSender(FakeSender):
        async def send(self, id: str, url: str, body: bytes) -> CallbackAnswer:
            answer = await super().send(id, url, body)
            if len(self.sent) < 3:
                raise RuntimeError("surprise")
            return answer

    async def test() -> None:
        async with calling(tmp_path, sender := FailingSender()) as served:
            id = await served.defer(x_msx_callback=URL)
            await served.ended(id)
            assert (await delivery(served, id))["state"] == "delivered"
            assert len(sender.sent) == 3
            assert f"a try of the callback of the job {id} failed: it is sent again" in caplog.text

    run(test())


def test_a_callback_that_no_server_sends_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with calling(tmp_path, FakeSender(CallbackAnswer(500))) as served:
            monkeypatch.setattr(schedule, "FIRST", 100.0)
            await served.ended(await served.defer(x_msx_callback=URL))
        later = time.time() + 3 * DAY
        store = Store(tmp_path / "store.db", lambda: later)
        assert CALLBACK in await store.totals()
        await store.sweep()
        assert await store.totals() == {}
        store.close()

    run(test())


def test_a_receiver_that_hangs_holds_up_itself(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(*[asyncio.Event()] * 4, CallbackAnswer(200))) as served:
            for _ in range(6):
                await served.defer(x_msx_callback="https://slow.example/")
            await until(lambda: len(sender.sent) == 4)
            await delivery_of_other(served)
            assert [url for _, url, _ in sender.sent].count("https://slow.example/") == 4

    run(test())


async def delivery_of_other(served: Served, **headers: Any) -> None:
    id = await served.defer(x_msx_callback=URL, **headers)
    await served.ended(id, **headers)
    while (await served.get(id, **headers)).json["callback"]["state"] != "delivered":
        await asyncio.sleep(0.001)


def test_a_host_is_one_whatever_its_port_and_however_it_is_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender(*[asyncio.Event()] * 4, CallbackAnswer(200))) as served:
            for url in ("slow.example:8001", "slow.example:8002", "SLOW.example", "slow.example.", "slow.example:8003"):
                await served.ended(await served.defer(x_msx_callback=f"https://{url}/"))
            await until(lambda: len(sender.sent) == 4)
            await delivery_of_other(served)
            assert len(sender.sent) == 5

    run(test())


def test_a_key_whose_hosts_hang_leaves_places_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "AT_ONCE_OF_ASKER", 2)

    async def test() -> None:
        sender = FakeSender(*[asyncio.Event()] * 2, CallbackAnswer(200))
        async with calling(tmp_path, sender, check_token=lambda given: KEYS[given or ""]) as served:
            for number in range(3):
                url = f"https://slow{number}.example/"
                id = await served.defer(x_msx_callback=url, authorization=SECRET)
                await served.ended(id, authorization=SECRET)
            await until(lambda: len(sender.sent) == 2)
            await delivery_of_other(served, authorization="Bearer bob")
            assert len(sender.sent) == 3

    run(test())


def test_a_full_disk_sends_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISK_AGAIN_AFTER", 0.0)
    write, refusals = write_try, [StoreUnavailable("full")] * 3

    def write_late(*values: Any) -> None:
        if refusals:
            raise refusals.pop()
        write(*values)

    monkeypatch.setattr(module, "write_try", write_late)

    async def test() -> None:
        async with calling(tmp_path, sender := FakeSender()) as served:
            id = await served.defer(x_msx_callback=URL)
            await served.ended(id)
            assert (await delivery(served, id))["state"] == "delivered"
            assert len(sender.sent) == 1

    run(test())


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://other.org/", "other.org is not in callback_hosts of the server's config.properties."),
        ("http://10.0.0.1/", "10.0.0.1 is not in callback_hosts of the server's config.properties."),
        ("ftp://hooks.example/", "expected a URL of http or https, without a user."),
        ("https://me:pass@hooks.example/", "expected a URL of http or https, without a user."),
        ("https://hooks.example:99999/", "expected a URL of http or https, without a user."),
        ("https://[::/", "expected a URL of http or https, without a user."),
        ("hooks.example", "expected a URL of http or https, without a user."),
        ("https://hooks.example/" + "a" * 2048, "a URL has at most 2048 characters."),
    ],
)
def test_what_no_callback_may_be(tmp_path: Path, url: str, reason: str) -> None:
    async def test() -> None:
        async with calling(tmp_path, FakeSender()) as served:
            refused = await served.post(x_msx_callback=url)
            assert (refused.status, reason in refused.body.decode()) == (400, True), refused.body
            assert (await served.store.totals()) == {}

    run(test())


def test_no_more_than_max_callbacks_wait(tmp_path: Path) -> None:
    async def test() -> None:
        async with calling(tmp_path, FakeSender(), begins=False, most=2) as served:
            ids = [await served.defer(x_msx_callback=URL) for _ in range(2)]
            told = await served.defer(x_msx_callback=URL, status=503)
            assert "2 callbacks wait for their jobs or receivers, and no more may (max_callbacks)." in told
            await served.defer()
            await served.runner.begin(served.speaker.app.direct())
            for id in ids:
                await served.ended(id)
                await delivery(served, id)
            await served.defer(x_msx_callback=URL)

    run(test())


def test_without_hosts_no_callback_is_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            told = await served.defer(x_msx_callback=URL, status=400)
            assert "no callbacks are sent: callback_hosts in the server's config.properties does it." in told

    run(test())


def test_waits_grow_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "FIRST", 5.0)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    assert [schedule.wait_after(tries, 0.0) for tries in (1, 2, 3, 11, 10_000)] == [6.0, 12.0, 24.0, 4320.0, 4320.0]
    assert schedule.wait_after(1, 600.0) == 600.0
    assert schedule.wait_after(1, 1e9) == 3600.0
