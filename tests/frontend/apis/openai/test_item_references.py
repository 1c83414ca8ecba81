"""Items of kept responses that a request names by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.apis.openai.item_references import ANSWERED, GIVEN, ReferencedItems
from msx_frontend.store.store import Store
from tests.frontend.apis.openai.test_kept_responses import ask, get, speaker
from tests.loops import run

CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOLS = [{"type": "function", "name": "f"}]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


def named(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": item["id"]} for item in items]


@pytest.mark.parametrize("stream", [False, True])
def test_items_of_an_answer_and_of_its_question_are_named(store: Store, stream: bool) -> None:
    async def test() -> None:
        one = speaker(store, f"Well. {CALL}", "done")
        first = await ask(one, {"input": "Q", "tools": TOOLS, "stream": stream})
        (question,) = (await get(one, f"{first['id']}/input_items"))["data"]
        assert len({item["id"] for item in first["output"]}) == len(first["output"]) == 2
        output = {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "42"}
        given = [*named(question, *first["output"]), output]
        second = await ask(one, {"input": given, "tools": TOOLS, "stream": stream})
        asked, said, result = one.asked[1].messages
        assert (asked["content"], said["content"].strip(), result["content"]) == ("Q", "Well.", "42")
        assert said["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
        kept = (await get(one, f"{second['id']}/input_items?order=asc"))["data"]
        assert [item["id"] for item in kept[:3]] == [question["id"], *(item["id"] for item in first["output"])]
        assert [item["type"] for item in kept] == ["message", "message", "function_call", "function_call_output"]

    run(test())


def test_a_reference_without_a_type_goes_on_with_a_conversation(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, "A1", "A2", "A3")
        first = await ask(one, {"input": "Q1"})
        second = await ask(one, {"input": "Q2"})
        again = {"id": first["output"][0]["id"]}
        await ask(one, {"input": [again], "previous_response_id": second["id"]})
        assert [message["content"] for message in one.asked[2].messages] == ["Q2", "A2", "A1"]

    run(test())


def test_an_item_that_is_not_there_is_named(store: Store) -> None:
    async def test() -> None:
        one = speaker(store)
        first = await ask(one, {"input": "Q"})
        reference = named(*first["output"])
        for id, key in (("msg_none", "ann"), (f"{reference[0]['id']}-7", "ann"), (reference[0]["id"], "bob")):
            error = await ask(one, {"input": [{"type": "item_reference", "id": id}]}, key=key, status=400)
            assert error["param"] == "input[0]"
            assert error["message"].startswith(
                f"input[0]: there is no item {id!r}: its response was not kept, is older"
            )
            assert error["message"].endswith("Send the item itself.")
        await get(one, first["id"], method="DELETE")
        await ask(one, {"input": reference}, status=400)
        error = await ask(one, {"input": [{"type": "item_reference"}]}, status=400)
        assert error["message"].startswith("input[0].id: expected the id of an item")

    run(test())


@pytest.mark.parametrize("id", [5, [1], {}])
def test_an_item_of_a_client_whose_id_is_no_text(store: Store, id: Any) -> None:
    async def test() -> None:
        one = speaker(store, "A1", "A2")
        first = await ask(one, {"input": [{"role": "user", "content": "Q", "id": id}]})
        (question,) = (await get(one, f"{first['id']}/input_items"))["data"]
        await ask(one, {"input": named(question)})
        assert one.asked[1].messages[0]["content"] == "Q"

    run(test())


def test_items_of_older_servers_may_have_any_id() -> None:
    kept = {ANSWERED: b'{"output": []}', GIVEN: b'[{"id": [5]}, {"id": "msg_a_1", "role": "user"}]'}
    found = ReferencedItems(lambda id, name: kept[name], 1000, "gone").resolve([{"id": "msg_a_1"}])
    assert found == [{"id": "msg_a_1", "role": "user"}]


def test_one_item_that_is_named_many_times_is_counted_each_time(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, "x" * 1000, largest=8000)
        first = await ask(one, {"input": "Q"})
        await ask(one, {"input": named(*first["output"] * 3)})
        error = await ask(one, {"input": named(*first["output"] * 20)}, status=400)
        assert error["message"].startswith("input[")
        assert "what references name: at most 8000 bytes" in error["message"]
        assert "max_request_size" in error["message"]

    run(test())


def test_responses_that_are_read_for_their_items_are_counted(store: Store) -> None:
    async def test() -> None:
        one = speaker(store, *["x" * 1000] * 9, largest=8000)
        references = [item for _ in range(8) for item in named(*(await ask(one, {"input": "Q"}))["output"])]
        error = await ask(one, {"input": references}, status=400)
        assert "what references name: at most 8000 bytes" in error["message"]

    run(test())
