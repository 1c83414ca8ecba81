from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import (
    Capabilities,
    GenerateDelta,
    TextSpan,
    Token,
    TokenizeReply,
    TokenizeRequest,
    TopToken,
    Usage,
)
from tests.frontend.generation.speaker import ALL, Speaker, events, refused, words
from tests.loops import run

END = Token(id=2, text="</s>", logprob=-0.1, special=True)


def body(inputs: str = "hi", **parameters: Any) -> dict[str, Any]:
    return {"inputs": inputs, "parameters": parameters}


def token(id: int, text: str, logprob: float = -0.5, special: bool = False) -> dict[str, Any]:
    return {"id": id, "text": text, "logprob": logprob, "special": special}


def test_generate() -> None:
    async def test() -> None:
        speaker = Speaker([words("a", "b")])
        exchange = await speaker.ask("/generate", {"inputs": "hi"})
        assert exchange.json == {"generated_text": "ab"}
        assert exchange.headers["x-compute-type"] == "cpu"
        assert (exchange.headers["x-prompt-tokens"], exchange.headers["x-generated-tokens"]) == ("3", "2")
        assert exchange.headers["x-compute-characters"] == "2"
        for name in ("compute", "total", "validation", "queue", "inference"):
            assert float(exchange.headers[f"x-{name}-time"]) >= 0
        assert float(exchange.headers["x-time-per-token"]) >= 0
        assert not speaker.asked[0].stream

    run(test())


def test_details() -> None:
    async def test() -> None:
        tops = (TopToken(id=1, text="a", logprob=-0.5),)
        delta = GenerateDelta(
            text="a",
            tokens=(Token(id=1, text="a", logprob=-0.5, top=tops), END),
            prompt_tokens=(Token(id=8, text="h"), Token(id=9, text="i", logprob=-2.0)),
            finish_reason="eos",
            seed=4,
            usage=Usage(prompt=2, completion=2),
        )
        exchange = await Speaker([[delta]]).ask("/generate", body(details=True, top_n_tokens=1))
        assert exchange.json["details"] == {
            "finish_reason": "eos_token",
            "generated_tokens": 2,
            "seed": 4,
            "prefill": [{"id": 8, "text": "h", "logprob": None}, {"id": 9, "text": "i", "logprob": -2.0}],
            "tokens": [token(1, "a"), token(2, "</s>", -0.1, True)],
            "top_tokens": [[token(1, "a")], []],
        }

    run(test())


@pytest.mark.parametrize(("reason", "name"), [("eos", "eos_token"), ("stop", "stop_sequence"), ("length", "length")])
def test_reasons(reason: Any, name: str) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a", finish=reason)]).ask("/generate", body(details=True))
        assert exchange.json["details"]["finish_reason"] == name

    run(test())


def test_the_best_of_several() -> None:
    async def test() -> None:
        likely = GenerateDelta(index=1, text="good", tokens=(Token(id=1, text="good", logprob=-0.1),))
        script = [*words("bad", last=False), likely, GenerateDelta(index=1, finish_reason="eos")]
        speaker = Speaker([script])
        exchange = await speaker.ask("/generate", body(best_of=2, do_sample=True, details=True))
        assert exchange.json["generated_text"] == "good"
        (other,) = exchange.json["details"]["best_of_sequences"]
        assert (other["generated_text"], other["finish_reason"]) == ("bad", "eos_token")
        assert speaker.asked[0].params.n == 2

    run(test())


def test_the_full_text() -> None:
    async def test() -> None:
        exchange = await Speaker([words("a")]).ask("/generate", body(return_full_text=True))
        assert exchange.json == {"generated_text": "hia"}

    run(test())


def test_stream() -> None:
    async def test() -> None:
        exchange = await Speaker([words("a", "b", finish="length")[:2] + words("c", finish="length")]).ask(
            "/generate_stream", body(details=True)
        )
        said = events(exchange)
        assert [event["index"] for event in said] == [1, 2, 3, 4]
        assert said[0] == {"index": 1, "token": token(0, "a"), "generated_text": None, "details": None}
        assert said[-1]["generated_text"] == "abc"
        assert said[-1]["details"] == {
            "finish_reason": "length",
            "generated_tokens": 3,
            "seed": None,
            "input_length": 3,
        }
        assert exchange.headers["x-compute-characters"] == "2"

    run(test())


def test_joined_texts_of_a_stream_are_the_text() -> None:
    async def test() -> None:
        a, b = Token(id=1, text="\N{REPLACEMENT CHARACTER}", logprob=-1.0), Token(id=2, text="x", logprob=-1.0)
        deltas = [
            GenerateDelta(text="", tokens=(a,)),
            GenerateDelta(text="éx", tokens=(a, b)),
            GenerateDelta(text="y", tokens=(END,), finish_reason="eos", usage=Usage(prompt=1, completion=4)),
        ]
        said = events(await Speaker([deltas]).ask("/generate_stream", body()))
        assert [event["token"]["text"] for event in said] == ["", "", "éx", "y"]
        assert [event["token"]["special"] for event in said] == [False] * 4
        assert (said[-1]["generated_text"], said[-1]["details"]) == ("éxy", None)
        ended = [GenerateDelta(text="a", tokens=(b,)), GenerateDelta(tokens=(END,), finish_reason="eos")]
        said = events(await Speaker([ended]).ask("/generate_stream", body(top_n_tokens=1)))
        assert said[-1]["token"] == token(2, "", -0.1, True)
        assert said[-1]["top_tokens"] == []

    run(test())


def test_one_token_is_one_event() -> None:
    async def test() -> None:
        (first, last) = words("a", finish="length")
        both = GenerateDelta(text="a", tokens=first.tokens, finish_reason="length", usage=last.usage)
        assert len(events(await Speaker([[both]]).ask("/generate_stream", body(max_new_tokens=1)))) == 1

    run(test())


def test_the_root_is_either() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        assert (await speaker.ask("/", body())).json == [{"generated_text": "a"}]
        streamed = await speaker.ask("/", {**body(), "stream": True})
        assert events(streamed)[-1]["generated_text"] == "a"

    run(test())


def test_a_refusal_has_tgis_shape() -> None:
    async def test() -> None:
        for path in ("/generate", "/generate_stream", "/"):
            error = await refused(Speaker([words("a")]), path, body(top_k=0), 422)
            assert error == {
                "error": "Input validation error: `top_k` must be strictly positive",
                "error_type": "validation",
            }

    run(test())


def test_of_several_models_the_first_is_meant_unless_one_is_named() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], models={"z": Capabilities(embed=True), "n": ALL, "m": ALL})
        for path, asked, model in (
            ("/generate", body(), "n"),
            ("/generate_stream", body(), "n"),
            ("/", {**body(), "model": "tgi"}, "n"),
            ("/generate", {**body(), "model": "m"}, "m"),
        ):
            exchange = await speaker.ask(path, asked)
            assert (exchange.status, exchange.headers["x-msx-model"]) == (200, model)
            assert speaker.jobs[-1].model_name == model
        assert (await speaker.ask("/info", method="GET")).headers["x-msx-model"] == "n"

    run(test())


def test_the_configured_model() -> None:
    async def test() -> None:
        models: dict[str, Capabilities | None] = {"n": ALL, "m": ALL, "e": Capabilities(embed=True)}
        speaker = Speaker([words("a")], models=models, default_llm="m")
        assert (await speaker.ask("/generate", body())).headers["x-msx-model"] == "m"
        assert (await speaker.ask("/generate", {**body(), "model": "n"})).headers["x-msx-model"] == "n"
        missing = await refused(Speaker(models=models, default_llm="x"), "/generate", body(), 404)
        assert missing["error"] == "Model not found: x (default_llm). The models that can generate text: m, n."
        other = await refused(Speaker(models=models, default_llm="e"), "/generate", body(), 422)
        assert 'Model "e" does not generate text' in other["error"]

    run(test())


SPANS = TokenizeReply(tokens=[TextSpan(id=3, text="hi", start=0, stop=2)], text="<user>hi")


def test_tokenize() -> None:
    async def test() -> None:
        speaker = Speaker([[SPANS]], models={"m": ALL, "b": ALL})
        tokenized = await speaker.ask("/tokenize", {"inputs": "hi"})
        assert tokenized.json == [{"id": 3, "text": "hi", "start": 0, "stop": 2}]
        assert tokenized.headers["x-msx-model"] == "m"
        chat = await speaker.ask("/chat_tokenize", {"messages": [{"role": "developer", "content": "hi"}]})
        assert chat.json == {
            "tokenize_response": [{"id": 3, "text": "hi", "start": 0, "stop": 2}],
            "templated_text": "<user>hi",
        }
        assert speaker.asked == [
            TokenizeRequest(prompt="hi"),
            TokenizeRequest(messages=[{"role": "system", "content": "hi"}]),
        ]

    run(test())


def test_tokenize_as_vllms_clients_ask() -> None:
    async def test() -> None:
        speaker = Speaker([[SPANS]])
        told = await speaker.begin("/tokenize", {"prompt": "hi", "add_special_tokens": False}).finish()
        assert told.json == {"count": 1, "max_model_len": 200, "tokens": [3], "token_strs": None}
        body = {
            "model": "m", "messages": [{"role": "user", "content": "hi"}], "return_token_strs": True,
            "add_generation_prompt": False, "chat_template_kwargs": {"enable_thinking": False},
        }  # fmt: skip
        assert (await speaker.begin("/tokenize", body).finish()).json["token_strs"] == ["hi"]
        assert speaker.asked == [
            TokenizeRequest(prompt="hi", add_special_tokens=False),
            TokenizeRequest(
                messages=[{"role": "user", "content": "hi"}],
                add_generation_prompt=False,
                chat_template_kwargs={"enable_thinking": False},
            ),
        ]
        own = {"messages": body["messages"], "chat_template": "{{ messages }}"}
        assert "requestChatTemplate" in (await refused(Speaker(), "/tokenize", own, 422))["error"]

    run(test())


def test_detokenize() -> None:
    async def test() -> None:
        speaker = Speaker([[TokenizeReply(tokens=[], text="<s>hi")]])
        told = await speaker.ask("/detokenize", {"model": "m", "tokens": [1, 3]})
        assert (told.json, told.headers["x-msx-model"]) == ({"prompt": "<s>hi"}, "m")
        assert speaker.asked == [TokenizeRequest(ids=(1, 3))]
        assert "tokens" in (await refused(Speaker(), "/detokenize", {"tokens": [-1]}, 422))["error"]

    run(test())


def test_tokenize_refusals() -> None:
    async def test() -> None:
        assert (await refused(Speaker(), "/tokenize", {"inputs": ""}, 422))["error_type"] == "validation"
        bare = Speaker(models={"m": Capabilities(tokenize=True)})
        body = {"messages": [{"role": "user", "content": "x"}]}
        assert "has no chat template" in (await refused(bare, "/chat_tokenize", body, 422))["error"]

    run(test())


@pytest.mark.parametrize(
    ("offered", "kind"),
    [
        (Capabilities(embed=True), {"embedding": {}}),
        (
            Capabilities(classify=True, rerank=True, labels=("L",)),
            {"reranker": {"id2label": {"0": "L"}, "label2id": {"L": 0}}},
        ),
        (
            Capabilities(classify=True, labels=("a", "b")),
            {"classifier": {"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}},
        ),
    ],
)
def test_info_where_nothing_generates(offered: Capabilities, kind: object) -> None:
    async def test() -> None:
        exchange = await Speaker(models={"x": Capabilities(), "m": offered}).ask("/info", method="GET")
        assert (exchange.json["model_type"], exchange.json["model_id"]) == (kind, "m")
        assert exchange.headers["x-msx-model"] == "m"

    run(test())


def test_info_and_health() -> None:
    async def test() -> None:
        speaker = Speaker()
        info = (await speaker.ask("/info", method="GET")).json
        assert (info["model_id"], info["max_input_tokens"], info["max_total_tokens"]) == ("m", 100, 200)
        assert (info["max_best_of"], info["max_stop_sequences"], info["router"]) == (4, 4, "msx-serve")
        healthy = await speaker.ask("/health", method="GET")
        assert (healthy.status, healthy.body) == (200, b"")
        speaker.versions["m"].workers.answer = False
        ill = await speaker.ask("/health", method="GET")
        assert (ill.status, ill.json) == (503, {"error": "unhealthy", "error_type": "healthcheck"})

    run(test())
