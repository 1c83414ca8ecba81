"""llm-serving's routes. Bodies and lines are as its own server and client write them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from msx_core.generation import SamplingParams
from msx_core.service_errors import WorkerDied
from msx_core.text_limits import TextLimits
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import ALL, Speaker, words
from tests.loops import run

CLIENTS: dict[str, Any] = {
    "inputs": "hi",
    "parameters": {
        "do_sample": False,
        "repetition_penalty": 1.0,
        "temperature": 1.0,
        "top_k": 1,
        "top_p": 1.0,
        "max_new_tokens": 30,
        "return_full_text": True,
        "return_protocol": "sse",
        "decoder_input_details": False,
        "details": False,
        "seed": 0,
        "stop": [],
        "top_n_tokens": 0,
        "truncate": False,
        "typical_p": 0,
        "watermark": False,
    },
    "stream": False,
}
"""Body of its Python client."""


def token(id: int, text: str, special: bool = False) -> dict[str, Any]:
    return {"id": id, "text": text, "logprob": -0.5, "special": special}


WHOLE = {
    "generated_text": "ab",
    "finish_reason": "eos",
    "generated_tokens": 2,
    "prefill": [token(0, "a")],
    "seed": 0,
    "tokens": [token(0, "a"), token(1, "b")],
    "top_tokens": [[token(0, "a")]],
    "details": None,
}


def lines(body: bytes) -> list[str]:
    return body.decode().splitlines()


@pytest.mark.parametrize("path", ["/models/m", "/models/m/generate"])
def test_the_clients_body(path: str) -> None:
    async def test() -> None:
        speaker = Speaker([words("a", "b")])
        exchange = await speaker.ask(path, CLIENTS)
        assert (exchange.status, exchange.json) == (200, WHOLE)
        assert exchange.headers["content-type"] == "application/json"
        assert "x-msx-ignored" not in exchange.headers
        assert speaker.asked[0].params == SamplingParams(
            temperature=0.0, top_k=1, max_tokens=30, fit_context=True, logprobs=0, repetition_penalty=1.0
        )

    run(test())


@pytest.mark.parametrize(("finish", "reason"), [("eos", "eos"), ("length", "length")])
@pytest.mark.parametrize("stream", [True, "True", False])
def test_generate_is_whole_whatever_stream_says(stream: Any, finish: str, reason: str) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a", "b", finish=finish)]).ask(
            "/models/m/generate", CLIENTS | {"stream": stream}
        )
        assert exchange.json == WHOLE | {"finish_reason": reason}

    run(test())


@pytest.mark.parametrize("name", ["m", "internlm_7b", "baichuan2pa"])
def test_the_prompt_is_as_it_is(name: str) -> None:
    """No frame is written around it for models of some names, as there."""

    async def test() -> None:
        speaker = Speaker([words("a")], models={name: ALL})
        await speaker.ask(f"/models/{name}", {"inputs": " what is <it>?\n"})
        assert speaker.asked[0].prompt == " what is <it>?\n"

    run(test())


def test_texts_stand_for_booleans_and_numbers() -> None:
    async def test() -> None:
        parameters = {"do_sample": "True", "top_p": "0.8", "top_k": "5", "max_new_tokens": "7", "truncate": "False"}
        speaker = Speaker([words("a")])
        exchange = await speaker.ask("/models/m", {"inputs": "hi", "parameters": parameters, "stream": "True"})
        assert exchange.headers["content-type"].startswith("text/event-stream")
        params = speaker.asked[0].params
        assert (params.temperature, params.top_p, params.top_k, params.max_tokens) == (1.0, 0.8, 5, 7)

    run(test())


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (None, (1.0, 3, 1.0, 300)),
        ({"do_sample": "False"}, (0.0, 3, 1.0, 300)),
        ({"do_sample": None}, (0.0, 3, 1.0, 300)),
        ({"temperature": 0}, (0.0, 3, 1.0, 300)),
        ({"temperature": 70000}, (0.0, 3, 1.0, 300)),
        ({"temperature": "nan"}, (0.0, 3, 1.0, 300)),
        ({"temperature": 900}, (100.0, 3, 1.0, 300)),
        ({"temperature": 65536}, (100.0, 3, 1.0, 300)),
        ({"temperature": 0.00001}, (0.0, 3, 1.0, 300)),
        ({"temperature": 0.00002}, (0.00002, 3, 1.0, 300)),
        ({"top_k": -1}, (1.0, 1, 1.0, 300)),
        ({"top_k": 5000}, (1.0, 100, 1.0, 300)),
        ({"top_p": 0}, (1.0, 3, 0.01, 300)),
        ({"top_p": 3}, (1.0, 3, 1.0, 300)),
    ],
)
def test_defaults_and_clamping(parameters: dict[str, Any] | None, expected: tuple[float, int, float, int]) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], models={"m": Capabilities(generate=True)})
        await speaker.ask("/models/m/generate", {"inputs": "hi", "parameters": parameters})
        params = speaker.asked[0].params
        assert (params.temperature, params.top_k, params.top_p, params.max_tokens) == expected

    run(test())


@pytest.mark.parametrize("parameters", [{}, {"max_new_tokens": 300}, {"max_new_tokens": 9000}])
def test_a_short_context_takes_as_many_tokens_as_fit(parameters: dict[str, Any]) -> None:
    """Its client sends 300 where its user says nothing."""

    async def test() -> None:
        assert ALL.max_total_tokens == 200
        speaker = Speaker([words("a")])
        exchange = await speaker.ask("/models/m/generate", {"inputs": "hi", "parameters": parameters})
        assert exchange.status == 200
        params = speaker.asked[0].params
        assert (params.max_tokens, params.fit_context) == (parameters.get("max_new_tokens", 300), True)

    run(test())


def test_members_without_an_effect_are_named() -> None:
    async def test() -> None:
        parameters = {"stop": ["x"], "seed": 3, "truncate": True, "typical_p": 0, "watermark": "False"}
        exchange = await Speaker([words("a")]).ask("/models/m/generate", {"inputs": "hi", "parameters": parameters})
        assert exchange.headers["x-msx-ignored"] == "parameters.seed, parameters.stop, parameters.truncate"

    run(test())


@pytest.mark.parametrize(
    "name", ["decoder_input_details", "details", "seed", "stop", "top_n_tokens", "truncate", "typical_p", "watermark"]
)
def test_each_member_without_an_effect(name: str) -> None:
    """And members that nobody knows."""

    async def test() -> None:
        speaker = Speaker([words("a")])
        for parameters in ({}, {name: ["x"], "unknown": 3}):
            exchange = await speaker.ask("/models/m", {"inputs": "hi", "parameters": parameters, "unknown": {}})
        assert exchange.headers["x-msx-ignored"] == f"parameters.{name}"
        plain, given = speaker.asked
        assert plain == given

    run(test())


@pytest.mark.parametrize("path", ["/models/m", "/models/m/generate_stream"])
def test_a_stream_is_bare_lines(path: str) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a", "b")]).begin(path, CLIENTS | {"stream": True}).finish()
        assert exchange.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line) for line in lines(exchange.body)]
        assert all((one["event"], one["retry"]) == ("message", 30000) for one in events)
        data = [one["data"] for one in events]
        assert data[0] == [
            {"details": None, "generated_text": "a", "tokens": token(0, "a"), "top_tokens": [token(0, "a")]}
        ]
        assert [one[0]["generated_text"] for one in data] == ["a", "b", "", "ab"]
        assert data[-1] == [WHOLE]

    run(test())


def test_the_stream_at_mindspore_servings_path() -> None:
    async def test() -> None:
        speaker = Speaker([words("a", "b")])
        body = {"instances": "hi", "parameters": {"max_new_tokens": 7, "seed": 3}}
        exchange = await speaker.begin("/model/m:generated_stream", body).finish()
        assert exchange.headers["content-type"].startswith("text/event-stream")
        assert exchange.headers["x-msx-ignored"] == "parameters.seed"
        assert [json.loads(line)["data"][0]["generated_text"] for line in lines(exchange.body)] == ["a", "b", "", "ab"]
        assert (speaker.asked[0].prompt, speaker.asked[0].params.max_tokens) == ("hi", 7)

    run(test())


@pytest.mark.parametrize("instances", [None, [{"text": "hi"}]])
def test_instances_that_are_no_text(instances: Any) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a")]).ask("/model/m:generated_stream", {"instances": instances})
        assert exchange.status == 422
        assert "instances" in exchange.json["error"]

    run(test())


def test_instances_that_are_too_long_have_the_clients_name() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], limits=TextLimits(max_texts_size=4))
        exchange = await speaker.ask("/model/m:generated_stream", {"instances": "x" * 99})
        assert exchange.status == 422
        assert "error: instances: at most 4 bytes" in exchange.json["error"]

    run(test())


def test_without_the_full_text() -> None:
    async def test() -> None:
        body = CLIENTS | {"parameters": {"return_full_text": "False"}}
        exchange = await Speaker([words("a", "b")]).begin("/models/m/generate_stream", body).finish()
        assert [json.loads(line)["data"][0]["generated_text"] for line in lines(exchange.body)] == ["a", "b", ""]

    run(test())


def test_a_failure_in_a_stream_cuts_the_connection() -> None:
    async def test() -> None:
        exchange = Speaker([[*words("a")[:1], WorkerDied("Gone.")]]).begin("/models/m/generate_stream", CLIENTS)
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert [json.loads(line)["data"][0]["generated_text"] for line in lines(exchange.body)] == ["a"]

    run(test())


@pytest.mark.parametrize(
    ("protocol", "headers"), [("x", {}), ("sse", {"user_agent": "mindspoer_serving/1.0"})], ids=["asked", "own client"]
)
def test_lines_of_data(protocol: str, headers: dict[str, str]) -> None:
    """Its client reads these alone."""

    async def test() -> None:
        body = {"inputs": "hi", "parameters": {"return_protocol": protocol}}
        exchange = await Speaker([words("a", "b")]).begin("/models/m/generate_stream", body, **headers).finish()
        data = [json.loads(line.removeprefix("data:")) for line in lines(exchange.body)]
        assert all(line.startswith("data:{") for line in lines(exchange.body))
        assert data[1] == {
            "details": None,
            "generated_text": "b",
            "tokens": token(1, "b"),
            "top_tokens": [token(1, "b")],
            "token": {"text": "b", "index": 2},
        }
        assert data[-1] == WHOLE

    run(test())


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 422, "inputs"),
        ({"inputs": 3}, 422, "inputs"),
        ({"inputs": "x", "parameters": {"do_sample": "maybe"}}, 422, "parameters.do_sample"),
        ({"inputs": "x", "parameters": {"repetition_penalty": 0}}, 422, "parameters.repetition_penalty"),
        ({"inputs": "x", "parameters": {"repetition_penalty": "inf"}}, 422, "parameters.repetition_penalty"),
        ({"inputs": "x", "parameters": {"top_p": "nan"}}, 422, "parameters.top_p"),
        ({"inputs": "x", "parameters": {"max_new_tokens": 0}}, 422, "parameters.max_new_tokens"),
    ],
)
def test_refusals(body: Any, status: int, message: str) -> None:
    async def test() -> None:
        for path in ("/models/m", "/models/m/generate", "/models/m/generate_stream"):
            exchange = await Speaker([words("a")]).ask(path, body)
            assert exchange.status == status
            assert message in exchange.json["error"]

    run(test())


def test_an_unknown_model() -> None:
    async def test() -> None:
        exchange = await Speaker([words("a")]).ask("/models/none/generate", {"inputs": "x"})
        assert exchange.status == 404
        assert "none" in exchange.json["error"]

    run(test())


@pytest.mark.parametrize(("name", "number"), [("get_bs", 2), ("get_request_numbers", 1)])
def test_numbers(name: str, number: int) -> None:
    async def test() -> None:
        exchange = await Speaker().ask(f"/serving/{name}", method="GET")
        assert exchange.headers["content-type"].startswith("text/event-stream")
        (line, empty) = exchange.body.decode().split("\n", 1)
        assert (json.loads(line.removeprefix("data: ")), empty) == (
            {"event": "message", "retry": 30000, "data": number},
            "\n",
        )

    run(test())


def test_model_info() -> None:
    """The model is the one that `default_llm` names, or else the first one."""

    async def test() -> None:
        offered = msgspec.structs.replace(ALL, max_concurrent=3)
        for name, default in (("m", "m"), ("a", "")):
            speaker = Speaker(models={"a": offered, "m": offered}, default_llm=default)
            exchange = await speaker.ask("/serving/get_serverd_model_info", method="GET")
            said = json.loads(exchange.body.decode().removeprefix("data: "))
            assert said.pop("version")
            assert said == {
                "docker_label": "",
                "max_batch_total_tokens": 600,
                "max_concurrent_requests": 3,
                "max_input_length": 100,
                "max_total_tokens": 200,
                "model_device_type": "cpu",
                "model_dtype": None,
                "model_id": name,
                "model_pipeline_tag": "text-generation",
            }

    run(test())
