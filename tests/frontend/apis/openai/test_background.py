from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from msx_core.service_errors import HandlerFailed
from tests.frontend.deferred.test_jobs import Served, serving
from tests.frontend.generation.speaker import say, words
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of

PATH = "/v1/responses"


async def ask(served: Served, path: str = "", body: Any = None, method: str = "GET", status: int = 200) -> Any:
    exchange = await served.speaker.ask(f"{PATH}{path}", body, method)
    assert exchange.status == status, exchange.body
    return exchange.json


async def begin(served: Served, **body: Any) -> Any:
    return await ask(served, "", {"input": "hi", "background": True, **body}, "POST")


async def ended(served: Served, id: str) -> Any:
    await served.ended(id.removeprefix("resp_"))
    return await ask(served, f"/{id}")


def test_a_response_comes_later(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            first = await begin(served)
            assert (first["status"], first["background"], first["output"], first["store"]) == (
                "queued",
                True,
                [],
                False,
            )
            job = await served.speaker.next_job()
            assert (await ask(served, f"/{first['id']}"))["status"] == "in_progress"
            say(job, *words("hello"))
            done = await ended(served, first["id"])
            assert (done["id"], done["status"], done["background"]) == (first["id"], "completed", True)
            assert done["output"][0]["content"][0]["text"] == "hello"
            await ask(served, f"/{first['id']}", method="DELETE")
            await ask(served, f"/{first['id']}", status=404)

    run(test())


def test_a_response_is_run_whose_client_leaves_while_it_is_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            written = threading.Event()
            held = asyncio.ensure_future(served.store.run(lambda _: written.wait(60)))
            exchange = served.speaker.begin(PATH, {"input": "hi", "background": True})
            while not served.store._calls.qsize():
                await asyncio.sleep(0)
            exchange.leave()
            await exchange.finish()
            written.set()
            await held
            ((kept,), _) = await served.runner.book.open_jobs()
            assert served.runner.find(kept.id, "") is not None
            say(await served.speaker.next_job(), *words("hello"))

    run(test())


def test_a_response_that_failed_has_its_error(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, [HandlerFailed(500, "no")]) as served:
            failed = await ended(served, (await begin(served))["id"])
            assert (failed["status"], failed["error"]) == ("failed", {"code": "generation_failed", "message": "no"})

    run(test())


def test_a_response_that_no_model_answers_any_more_has_its_error(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as served:
            id = (await begin(served))["id"]
            await served.runner.begin(exchange_of(log=FakeAccessLog()).direct())
            failed = await ended(served, id)
            error = {"code": "server_error", "message": "No model answers /v1/responses any more."}
            assert (failed["status"], failed["error"]) == ("failed", error)

    run(test())


def test_a_response_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            id = (await begin(served))["id"]
            job = await served.speaker.next_job()
            assert (await ask(served, f"/{id}/cancel", method="POST"))["status"] == "cancelled"
            assert job.done
            assert (await ask(served, f"/{id}"))["status"] == "cancelled"
            await ask(served, "/resp_x/cancel", method="POST", status=404)

    run(test())


def test_a_wrong_request_is_refused_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            body = {"input": "hi", "background": True}
            for wrong in ({"temperature": 9}, {"stream": True}, {"tool_choice": "required"}):
                await ask(served, "", {**body, **wrong}, "POST", status=400)
            assert await served.store.totals() == {}

    run(test())


def test_a_conversation_goes_on_from_the_background(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("A1"), keeps=True) as served:
            first = await ended(served, (await begin(served, input="Q1"))["id"])
            assert first["store"] is True
            second = await begin(served, input="Q2", previous_response_id=first["id"])
            await ended(served, second["id"])
            said = [message["content"] for message in served.speaker.asked[1].messages]
            assert said == ["Q1", "A1", "Q2"]
            for one in (first, second):
                await ask(served, f"/{one['id']}", method="DELETE")
                await ask(served, f"/{one['id']}", status=404)

    run(test())


def test_background_of_nothing_is_ordinary(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            assert (await begin(served, background=False))["status"] == "completed"

    run(test())
