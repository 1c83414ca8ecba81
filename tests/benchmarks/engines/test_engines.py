"""The loads, their reading, and what is made of their figures; no server is started."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import __main__ as program
from benchmarks.engines import engines
from benchmarks.engines.contestants import OURS, OWN, THEIRS, flags
from benchmarks.engines.figures import Turns, sum_of_spans, table, targets
from benchmarks.engines.texts import Load, Text, completed, play
from benchmarks.load.client import Address

USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}\n\ndata: [DONE]\n\n'
EVENTS = b'data: {"choices": [{"text": "a"}], "usage": null}\n\n' + USAGE


def test_tokens_are_those_that_the_server_has_counted() -> None:
    assert completed(EVENTS) == 2
    assert completed(b'{"error": "no"}') == 0


def test_prompts_differ_by_round_and_text() -> None:
    load = Load(2, 16)
    prompts = [*load.prompts(0), *load.prompts(1)]
    assert len({tuple(prompt) for prompt in prompts}) == 4
    assert load.prompts(1) == load.prompts(1)
    assert {len(prompt) for prompt in prompts} == {16}


def served(reply: bytes, talk: Callable[[Address], Awaitable[list[Text]]]) -> list[Text]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(size))
        assert (asked["ignore_eos"], asked["stream"], asked["max_tokens"]) == (True, True, 2)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(reply) + reply)
        await writer.drain()
        writer.close()

    async def run() -> list[Text]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            return await talk(Address(host, port))

    return asyncio.run(run())


def test_texts_at_once() -> None:
    texts = served(EVENTS, lambda address: asyncio.to_thread(play, address, [[1], [2]], 2))
    assert [text.tokens for text in texts] == [2, 2]
    assert all(text.sent <= text.first <= text.last for text in texts)


def test_a_text_with_other_tokens_is_refused() -> None:
    with pytest.raises(click.ClickException, match="0 tokens came instead of 2"):
        served(b"data: [DONE]\n\n", lambda address: asyncio.to_thread(play, address, [[1]], 2))


def test_spans_of_texts() -> None:
    at_once = [Text(0, 1, 4, 8), Text(0, 1, 3, 8)]
    assert sum_of_spans(at_once) == 4
    assert sum_of_spans([Text(10, 11, 12, 8), *at_once]) == 6


def test_figures_of_turns() -> None:
    turns = Turns()
    turns.add([Text(0, 1, 4, 8), Text(0, 3, 4, 8)], 0.016)
    assert (turns.rates, turns.firsts, turns.micros) == ([4], [2], [1000])


def test_rows_and_targets() -> None:
    found = {
        Load(1, 16): {
            OURS: Turns([90.0, 99.0], [0.11, 0.12], [30.0, 30.0]),
            THEIRS: Turns([100.0, 100.0], [0.1, 0.1], [20.0, 20.0]),
            OWN: Turns([50.0, 50.0], [0.1, 0.1], [1.0, 1.0]),
        }
    }
    rows = {row[2]: row for row in table("t", found).rows}
    assert rows[OURS][3:6] == ("94.5", "0.945", "0.900 – 0.990")
    assert rows[OURS][-1] == "30.0"
    assert rows[THEIRS][4:6] == ("1", "")
    assert rows[OWN][-1] == "–"
    assert [(one.measured, one.met) for one in targets("t", found)] == [("0.945", False), ("1.150", False)]


def test_arguments_are_those_of_vllms_command_line() -> None:
    given = flags({"enforce-eager": True, "max-model-len": 1024, "dtype": "float32", "async-scheduling": False})
    assert given == ["--enforce-eager", "--max-model-len", "1024", "--dtype", "float32", "--no-async-scheduling"]


def test_each_is_the_first_in_turn() -> None:
    assert [engines.in_turn(["a", "b", "c"], number)[0] for number in range(4)] == ["a", "b", "c", "a"]  # type: ignore[list-item, comparison-overlap]


def test_without_an_interpreter_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSX_VLLM_PYTHON", raising=False)
    shown = CliRunner().invoke(program.main, ["engines"])
    assert shown.exit_code == 0
    assert "names no interpreter with vLLM" in shown.output


def test_a_model_of_its_own_or_those_that_are_given(tmp_path: Path) -> None:
    [(title, made)] = engines.models(())
    assert title == "Llama of 4 layers"
    with made as folder:
        assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 4
    assert [name for name, _ in engines.models((tmp_path,))] == [tmp_path.name]
