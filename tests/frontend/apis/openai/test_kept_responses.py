from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.store.store import Store
from tests.frontend.generation.speaker import Speaker, events, words
from tests.frontend.keys.some import some_key
from tests.loops import run

PATH = "/v1/responses"
DAY = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


def speaker(store: Store, *says: str, size: int = 1 << 20, largest: int = 10_000) -> Speaker:
    keys = {f"Bearer {name}": some_key(name) for name in ("ann", "bob")}
    script: list[Any] = [words(text) for text in says or ("a",)]
    kept = KeptResponses(store, 30, size, largest)
    return Speaker(script, check_token=lambda given: keys[given or ""], kept=kept)


async def ask(one: Speaker, body: Any, key: str = "ann", status: int = 200) -> Any:
    exchange = await one.ask(PATH, body, authorization=f"Bearer {key}", x_request_id="r")
    assert exchange.status == status, exchange.body
    if status != 200:
        return exchange.json["error"]
    return events(exchange)[-1]["response"] if body.get("stream") else exchange.json


async def get(one: Speaker, path: str, key: str = "ann", method: str = "GET", status: int = 200) -> Any:
    exchange = await one.ask(f"{PATH}/{path}", None, method, authorization=f"Bearer {key}")
    assert exchange.status == status, exchange.body
    return exchange.json if status == 200 else exchange.json["error"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_kept_before_it_is_sent(store: Store, stream: bool) -> None:
    async def test() -> None:
        one = speaker(store, "hello")
        reply = await ask(one, {"input": "hi", "stream": stream})
        assert reply["store"] is True
        assert reply["id"] != "resp_r"  # a client's id of a request may come twice
        assert await get(one, reply["id"]) == reply

    run(test())


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on(store: Store, stream: bool) -> None:
    async def test() -> None:
        one = speaker(store, "A1", "A2", "A3")
        first = await ask(one, {"input": "Q1", "instructions": "once", "stream": stream})
        second = await ask(one, {"input": "Q2", "previous_response_id": first["id"], "stream": stream})
        third = await ask(one, {"input": [{"role": "user", "content": "Q3"}], "previous_response_id": second["id"]})
        said = [(message["role"], message["content"]) for message in one.asked[2].messages]
        assert said == [("user", "Q1"), ("assistant", "A1"), ("user", "Q2"), ("assistant", "A2"), ("user", "Q3")]
        assert third["previous_response_id"] == second["id"]

    run(test())


def test_a_call_and_its_output_go_on(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "done")
        tools = [{"type": "function", "name": "f"}]
        first = await ask(one, {"input": "Q", "tools": tools})
        (call,) = first["output"]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
        await ask(one, {"input": [output], "tools": tools, "previous_response_id": first["id"]})
        assert [message["role"] for message in one.asked[1].messages] == ["user", "assistant", "tool"]

    run(test())


def test_a_response_is_its_keys(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        id = (await ask(one, {"input": "hi"}))["id"]
        error = await get(one, id, key="bob", status=404)
        assert error["message"].startswith(f"There is no response {id!r}: it was not kept, is older than 30 days")
        assert error["code"] == "response_not_found"
        await get(one, id, key="bob", method="DELETE", status=404)
        await get(one, f"{id}/input_items", key="bob", status=404)
        refused = await ask(one, {"input": "x", "previous_response_id": id}, key="bob", status=400)
        assert (refused["param"], refused["message"][:50]) == (
            "previous_response_id",
            f"previous_response_id: There is no response {id!r}"[:50],
        )
        assert await get(one, id)

    run(test())


def test_a_response_that_is_deleted_is_gone(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        id = (await ask(one, {"input": "hi"}))["id"]
        assert await get(one, id, method="DELETE") == {"id": id, "object": "response", "deleted": True}
        await get(one, id, status=404)
        await get(one, id, method="DELETE", status=404)

    run(test())


def test_a_response_without_store_is_not_kept(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        reply = await ask(one, {"input": "hi", "store": False})
        assert reply["store"] is False
        assert await store.totals() == {}

    run(test())


def test_items_come_in_pages(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, "A")
        given = [{"role": "user", "content": f"Q{number}"} for number in range(3)]
        id = (await ask(one, {"input": given}))["id"]
        newest = await get(one, f"{id}/input_items?limit=2")
        assert [item["content"][0]["text"] for item in newest["data"]] == ["Q2", "Q1"]
        assert (newest["has_more"], newest["first_id"], newest["last_id"]) == (
            True,
            newest["data"][0]["id"],
            newest["data"][1]["id"],
        )
        last = await get(one, f"{id}/input_items?limit=2&after={newest['last_id']}")
        assert [item["content"] for item in last["data"]] == [[{"type": "input_text", "text": "Q0"}]]
        assert last["has_more"] is False
        oldest = await get(one, f"{id}/input_items?order=asc&limit=1")
        assert oldest["data"][0]["content"][0]["text"] == "Q0"
        for limit in ("0", "101", "x", "-1", "%C2%B2", "00000000199999999"):
            error = await get(one, f"{id}/input_items?limit={limit}", status=400)
            assert error["message"].startswith("limit: expected a number from 1 to 100")

    run(test())


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_for_which_there_is_no_room_is_answered_and_told(store: Store, stream: bool) -> None:
    async def test() -> None:
        one = speaker(store, "hello", size=600)
        body = {"input": "x" * 600, "stream": stream}
        exchange = await one.ask(PATH, body, authorization="Bearer ann")
        reply = events(exchange)[-1]["response"] if stream else exchange.json
        assert (reply["store"], reply["output"][0]["content"][0]["text"]) == (False, "hello")
        assert stream or exchange.headers["x-msx-ignored"] == "store"
        await get(one, reply["id"], status=404)

    run(test())


def test_a_conversation_that_is_too_large_is_refused(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, "hello", largest=700)
        id = (await ask(one, {"input": "x" * 600}))["id"]
        error = await ask(one, {"input": "x", "previous_response_id": id}, status=400)
        assert error["message"].startswith("previous_response_id: its conversation: ")
        assert "max_request_size" in error["message"]

    run(test())


def test_a_kept_response_is_answered_whole(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        id = (await ask(one, {"input": "hi"}))["id"]
        error = await get(one, f"{id}?stream=true", status=400)
        assert error["message"] == "stream: a response that is kept is answered whole"

    run(test())


def test_without_a_store_each_route_names_its_key() -> None:
    async def test() -> None:
        one = Speaker([words("a")])
        for method, path in (("GET", "resp_x"), ("DELETE", "resp_x"), ("GET", "resp_x/input_items")):
            exchange = await one.ask(f"{PATH}/{path}", None, method)
            assert exchange.status == 404
            assert "responses_store=true" in exchange.json["error"]["message"]

    run(test())


def test_a_client_that_leaves_while_its_response_is_kept_is_let_go(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        id = (await ask(one, {"input": "hi"}))["id"]
        exchange = one.begin(PATH, {"input": "x", "previous_response_id": id}, authorization="Bearer ann")
        exchange.leave()
        await exchange.finish()
        assert len(one.jobs) == 1

    run(test())
