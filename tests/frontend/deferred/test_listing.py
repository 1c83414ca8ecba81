"""Lists of jobs: a key's own, and those of all keys for operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_frontend.apis.jobs import listing
from msx_frontend.apis.jobs.family import jobs_management
from tests.frontend.deferred.test_jobs import KEYS, SECRET, Served, serving
from tests.frontend.generation.speaker import words
from tests.loops import run
from tests.net.http.client import FakeAccessLog, begin
from tests.net.http.exchanges import exchange_of

BOB = "Bearer bob"


async def page(served: Served, query: str = "", **headers: str) -> Any:
    return (await served.speaker.begin(f"/jobs{query}", None, "GET", **headers).finish()).json


def ids(page: Any) -> list[str]:
    return [one["id"] for one in page["jobs"]]


def test_a_key_lists_its_own_the_newest_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False, check_token=lambda given: KEYS[given or ""]) as served:
            made = [await served.defer(authorization=SECRET) for _ in range(5)]
            await served.defer(authorization=BOB)
            whole = await page(served, authorization=SECRET)
            assert (ids(whole), whole["next"]) == (made[::-1], None)
            assert "key" not in whole["jobs"][0]
            first = await page(served, "?limit=2", authorization=SECRET)
            assert (ids(first), first["next"]) == (made[:2:-1], made[3])
            second = await page(served, f"?limit=3&after={first['next']}", authorization=SECRET)
            assert ids(second) == made[2::-1]

    run(test())


def test_a_list_goes_on_behind_a_job_that_was_forgotten(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            made = [await served.defer() for _ in range(6)]
            for id in made:
                await served.ended(id)
            told: list[str] = []
            after: str | None = ""
            while after is not None:
                asked = await page(served, f"?limit=2&after={after}")
                told, after = told + ids(asked), asked["next"]
                for id in ids(asked):
                    await served.get(id, "DELETE")
            assert told == made[::-1]

    run(test())


def test_jobs_of_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LOOK", 2)

    async def test() -> None:
        async with serving(tmp_path, words("a"), at_once=1) as served:
            done = await served.defer()
            await served.ended(done)
            served.runner._at_once = 0
            waiting = [await served.defer() for _ in range(3)]
            assert ids(await page(served, "?state=done&limit=1")) == [done]
            assert ids(await page(served, "?state=queued&limit=2")) == waiting[:0:-1]
            assert ids(await page(served, "?state=cancelled&limit=1")) == []
            monkeypatch.setattr(listing, "MOST_LOOKS", 1)
            short = await page(served, "?state=running&limit=1")
            assert (ids(short), short["next"]) == ([], waiting[1]), "it goes on behind what was looked at"

    run(test())


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "limit=-1", "state=new", "limit=1e3", "limit=%C2%B2", "after=job_none"],
)
def test_what_is_no_list(tmp_path: Path, query: str) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            name = query.partition("=")[0]
            told = await page(served, f"?{query}")
            assert (told["code"], told["message"].startswith(f"{name}: expected ")) == (400, True)

    run(test())


def test_operators_see_and_cancel_all(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a"), at_once=1, check_token=lambda given: KEYS[given or ""]) as served:
            ann, bob = await served.defer(authorization=SECRET), await served.defer(authorization=BOB)
            await served.ended(ann, authorization=SECRET)
            await served.ended(bob, authorization=BOB)
            app = exchange_of(jobs_management(served.runner), log=FakeAccessLog())

            async def ask(path: str = "", method: str = "GET") -> Any:
                return await begin(app, method, f"/management/jobs{path}").finish()

            whole = (await ask()).json
            assert [(one["id"], one["key"]) for one in whole["jobs"]] == [(bob, "bob"), (ann, "ann")]
            assert (await ask(f"/{ann}")).json["key"] == "ann"
            assert (await ask(f"/{bob}/result")).status == 200
            assert (await ask(f"/{bob}", "DELETE")).json == {"id": bob, "state": "forgotten"}
            assert (await ask(f"/{bob}")).status == 404
            served.runner._at_once = 0
            waiting = await served.defer(authorization=BOB)
            assert (await ask(f"/{waiting}", "DELETE")).json["state"] == "cancelled"

    run(test())


def test_without_jobs_there_is_no_list() -> None:
    async def test() -> None:
        app = exchange_of(jobs_management(None), log=FakeAccessLog())
        refused = await begin(app, "GET", "/management/jobs").finish()
        assert (refused.status, "jobs=true" in refused.json["message"]) == (404, True)

    run(test())


def test_one_key_leaves_room_for_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False, most=4, check_token=lambda given: KEYS[given or ""]) as served:
            for _ in range(2):
                await served.defer(authorization=SECRET)
            told = await served.defer(status=503, authorization=SECRET)
            assert "The key ann has all that one key may: 50% of 4 records" in told
            assert "(max_jobs, jobs_size)" in told
            await served.defer(authorization=BOB)

    run(test())
