"""The handler with a stub of vLLM: the same requests in test_real.py with the real one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk import Context
from msx_sdk.context import ModelInfo
from msx_sdk.errors import HandlerLoadError, PredictionError
from msx_sdk.generation import (
    BeamSearch,
    Constraint,
    GenerateRequest,
    SamplingParams,
    TokenizeReply,
    TokenizeRequest,
    Usage,
)
from msx_sdk.testing import LocalModel
from msx_vllm import handler as module
from msx_vllm import watch
from msx_vllm.handler import VllmHandler
from msx_vllm.memory import host_cache_bytes
from tests.vllm.cases import CASES, REFUSED, Case, Refusal, Refused, ask

CONFIG: dict[str, Any] = {"vllm": {"max-model-len": "1k", "dtype": "float32"}, "maxConcurrent": 3}


@pytest.fixture
def config() -> dict[str, Any]:
    return CONFIG


@pytest.fixture
def model(stub: None, here: Path, config: dict[str, Any]) -> Iterator[LocalModel]:
    with LocalModel(VllmHandler, here, config=config) as model:
        yield model


def engine_of(model: LocalModel) -> Any:
    return model.handler.owner.llm._engine


def test_scores_and_draws_are_asked_for_before_a_model_is_ready(model: LocalModel) -> None:
    assert [(one.temperature, one.logprobs) for one in engine_of(model).asked] == [(0, 0), (1, None)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_requests_that_every_engine_answers_alike(model: LocalModel, case: Case) -> None:
    deltas = ask(model, case.request, case.params)
    assert not isinstance(deltas, Refusal), deltas
    assert case.holds(deltas)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_requests_that_every_engine_refuses_alike(model: LocalModel, case: Refused) -> None:
    refusal = ask(model, case.request, case.params)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert re.match(case.message, refusal.message), refusal.message


def test_every_member_reaches_vllm(model: LocalModel) -> None:
    params: dict[str, Any] = {
        "temperature": 0.7,
        "top_k": 5,
        "top_p": 0.9,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.3,
        "logit_bias": {3: 1.5},
        "seed": 7,
        "stop": ("x",),
        "stop_token_ids": (9,),
        "allowed_token_ids": (98, 99),
        "bad_words": ("w",),
        "ignore_eos": True,
        "min_tokens": 1,
        "max_tokens": 2,
        "logprobs": 1,
        "skip_special_tokens": False,
    }
    ask(model, {"prompt": "a", "priority": 4}, {**params, "keep_stop": True, "prompt_logprobs": True})
    engine = engine_of(model)
    asked = engine.asked[-1]
    assert {name: getattr(asked, name) for name in params} == {
        name: list(value) if isinstance(value, tuple) else value for name, value in params.items()
    }
    assert (asked.include_stop_str_in_output, asked.prompt_logprobs, engine.priorities[-1]) == (True, 1, 4)


@pytest.mark.parametrize(
    ("constraint", "member", "value"),
    [
        (
            Constraint(kind="json_schema", value='{"type": "object", "maximum": 1e999}'),
            "json",
            '{"x-guidance": {"lenient": true}, "type": "object", "maximum": 1e999}',
        ),
        (Constraint(kind="json_schema", value=" {}"), "json", '{"x-guidance": {"lenient": true}}'),
        (Constraint(kind="json_schema", value="true"), "json", "true"),
        (Constraint(kind="json_object"), "json_object", True),
        (Constraint(kind="regex", value="a+"), "regex", "a+"),
        (Constraint(kind="choice", value='["yes", "no"]'), "choice", ["yes", "no"]),
        (Constraint(kind="lark", value='start: "a"'), "grammar", 'start: "a"'),
    ],
)
def test_constraints_are_structured_outputs(
    model: LocalModel, constraint: Constraint, member: str, value: object
) -> None:
    ask(model, {"prompt": "a"}, {"constraint": constraint})
    assert getattr(engine_of(model).asked[-1].structured_outputs, member) == value


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"temperature": 2.5}, "temperature: 2.5 is more than 2.0, the most that vLLM samples with"),
        ({"typical_p": 0.5}, "typical_p: vLLM has no typical sampling; leave it out, or send top_p or min_p"),
        (
            {"constraint": Constraint(kind="json_schema", value='{"a":' * 101 + "1" + "}" * 101)},
            "constraint: the json_schema is nested more than 100 levels deep",
        ),
        (
            {"constraint": Constraint(kind="choice", value='["", 1]')},
            "constraint: the choice is not a JSON list of one or more texts, none of them empty",
        ),
    ],
)
def test_what_vllm_does_not_do_is_refused_by_name(model: LocalModel, params: dict[str, Any], message: str) -> None:
    assert ask(model, {"prompt": "a"}, params) == Refusal(400, message)


def test_messages_that_the_template_refuses(model: LocalModel) -> None:
    refusal = ask(model, {"messages": [{"role": "bad", "content": "a"}]}, {})
    assert refusal == Refusal(400, "messages: the model's chat template refuses them: roles must alternate")


def test_a_template_gets_the_variables_that_it_reads(model: LocalModel) -> None:
    request = {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"flag": "F", "max_length": 1}}
    deltas = ask(model, {**request, "return_prompt_ids": True, "add_special_tokens": False}, {"max_tokens": 1})
    assert not isinstance(deltas, Refusal)
    assert deltas[0].prompt_ids == (97, 70)
    assert model.handler.owner.capabilities().template_variables == ("flag",)


@pytest.mark.parametrize("name", ["messages", "tools", "bos_token"])
def test_variables_that_a_template_gets_from_elsewhere(model: LocalModel, name: str) -> None:
    request = {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {name: []}}
    assert ask(model, request, {}) == Refusal(400, f"chat_template_kwargs: {name} cannot be set")


def test_functions_and_marks_of_a_template_are_no_variables(stub: None) -> None:
    from msx_vllm.engine.prompts import variables_of

    source = (
        "{% set it = namespace(a=1) %}{{ bos_token }}{% generation %}{{ flag }}{% endgeneration %}"
        "{{ strftime_now('%d') }}{{ raise_exception('no') }}"
    )
    assert variables_of(source) == ("flag",)
    assert variables_of("{% unknown %}") is None


@pytest.mark.parametrize("config", [{**CONFIG, "requestChatTemplate": True}])
def test_a_template_of_the_request(model: LocalModel, config: dict[str, Any]) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}!{% endfor %}{{ flag }}"
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a"}]
    request = {"messages": messages, "chat_template_kwargs": {"flag": "F"}}
    given = {**request, "chat_template": template, "return_prompt_ids": True, "add_special_tokens": False}
    deltas = ask(model, given, {"max_tokens": 1})
    assert not isinstance(deltas, Refusal)
    assert "".join(map(chr, deltas[0].prompt_ids)) == "<s>a!F"
    assert model.handler.owner.capabilities().request_templates
    bad = ask(model, {**given, "chat_template": "{{ 1 / 0 }}"}, {"max_tokens": 1})
    assert bad == Refusal(400, "chat_template: ZeroDivisionError: division by zero")
    asked = TokenizeRequest(messages=messages, chat_template="{{ messages[0].content }}?")
    assert model._loop.run_until_complete(model.handler.owner.tokenize(asked, model.context)).text == "a?"


def test_a_template_of_the_request_is_refused_without_the_key(model: LocalModel) -> None:
    request = {"messages": [{"role": "user", "content": "a"}], "chat_template": "x"}
    assert ask(model, request, {}) == Refusal(400, "chat_template: this model uses its own alone; leave it out")


def test_a_prompt_is_tokenized(model: LocalModel) -> None:
    handler, context = model.handler.owner, model.context

    def reply(**asked: Any) -> TokenizeReply:
        found: TokenizeReply = model._loop.run_until_complete(handler.tokenize(TokenizeRequest(**asked), context))
        return found

    assert [(one.id, one.start, one.stop) for one in reply(prompt="ab").tokens] == [(0, 0, 0), (97, 0, 1), (98, 1, 2)]
    assert reply(prompt="ab").special == {0: "<s>"}
    assert reply(ids=(97, 98)).text == "ab"
    assert reply(messages=[{"role": "user", "content": "ab"}]).text == "ab"
    with pytest.raises(PredictionError, match="tokens: the model has no token 128, its tokens are 0 to 127"):
        reply(ids=(128,))


def test_the_best_texts_of_beams(model: LocalModel) -> None:
    params = {"beam_search": BeamSearch(), "n": 2, "max_tokens": 2, "logprobs": 1}
    found = ask(model, {"prompt": "a", "stream": False, "return_prompt_ids": True}, params)
    assert not isinstance(found, Refusal)
    assert [(one.text, one.finish_reason, one.prompt_ids) for one in found] == [
        ("bc", "length", (0, 97)),
        ("bd", "length", ()),
    ]
    assert [(token.logprob, token.top[0].text) for token in found[1].tokens] == [(-0.5, "b"), (-1.5, "c")]
    assert (found[0].usage, found[1].usage) == (None, Usage(prompt=2, completion=4, cached=1))


def test_beams_that_vllm_gave_up(model: LocalModel) -> None:
    """It aborts requests before it sleeps."""

    async def aborted(*_: object, **__: object) -> AsyncIterator[Any]:
        text = SimpleNamespace(logprobs=[], finish_reason="abort")
        yield SimpleNamespace(outputs=[text], num_cached_tokens=0)

    engine_of(model).generate = aborted
    refusal = ask(model, {"prompt": "a", "stream": False}, {"beam_search": BeamSearch(), "n": 2, "max_tokens": 2})
    assert refusal == Refusal(503, "vLLM ended the text before it was complete: abort")


@pytest.mark.parametrize(
    ("params", "stream", "message"),
    [
        (
            {"n": 9},
            False,
            "n: 9 beams need 27 tokens of each step, more than vllm.max_logprobs (20) allows; ask for fewer",
        ),
        ({}, True, "use_beam_search: not together with stream: the best text is known at the end"),
        ({"min_tokens": 1}, False, "min_tokens: not together with use_beam_search; leave one of them out"),
    ],
)
def test_beams_that_are_refused(model: LocalModel, params: dict[str, Any], stream: bool, message: str) -> None:
    asked = {"beam_search": BeamSearch(), "max_tokens": 2, **params}
    assert ask(model, {"prompt": "a", "stream": stream}, asked) == Refusal(400, message)


def test_a_client_that_leaves_aborts_its_text(model: LocalModel) -> None:
    async def leave() -> None:
        request = GenerateRequest(prompt="a", params=SamplingParams(max_tokens=9))
        deltas = model.handler.owner.generate(request, model.context.for_call(batch()))
        async for _ in deltas:
            break
        await deltas.aclose()

    model._loop.run_until_complete(leave())
    assert engine_of(model).aborted == 1


def test_more_requests_than_max_concurrent_are_refused(model: LocalModel) -> None:
    model.handler.owner._running = 3
    assert ask(model, {"prompt": "a"}, {}) == Refusal(
        429,
        "The model is overloaded: 3 requests are in progress, as many as maxConcurrent allows; try again later.",
    )


def test_the_engine_is_described(model: LocalModel) -> None:
    described = model.handler.owner.describe()
    assert (described["dtype"], described["context_length"], described["max_input_tokens"]) == ("float32", 1000, 999)
    assert described["sampling"] == {"temperature": 0.5}
    assert described["kv_cache_memory_bytes"] > 0
    assert engine_of(model).args.structured_outputs_config == {"backend": "guidance"}


def test_the_engine_is_shut_down_in_good_order(stub: None, here: Path) -> None:
    with LocalModel(VllmHandler, here, config=CONFIG) as model:
        engine = engine_of(model)
    assert engine.ended == module.ORDERLY


def test_a_dead_engine_ends_the_worker(stub: None, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVERY", 0)
    monkeypatch.setattr(watch, "LAST_WORDS", 0)
    with LocalModel(VllmHandler, here, config=CONFIG) as model:
        ended = model._loop.create_future()
        monkeypatch.setattr(os, "_exit", ended.set_result)
        engine_of(model).errored = True
        assert model._loop.run_until_complete(ended) == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cacheMemory": 5}, "cacheMemory: --handler vllm does not read this key: give vllm.kv_cache_memory_bytes"),
        ({"prefillBuckets": [5]}, "prefillBuckets: --handler vllm does not read this key: leave it out"),
        (
            {"vllm": {"max_modellen": 5}},
            "vllm.max_modellen: vLLM's engine has no such argument; did you mean max_model_len?",
        ),
        (
            {"vllm": {"zzz": 5}},
            "vllm.zzz: vLLM's engine has no such argument; see the arguments of its AsyncEngineArgs",
        ),
        ({"vllm": {"enforce_eager": 1}}, "vllm.enforce_eager: 1 is not true or false"),
        ({"vllm": {"max-model-len": "long"}}, "vllm: --max-model-len: invalid human value: 'long'"),
        (
            {"vllm": {"cudagraph-capture-sizes": [1, "--enforce-eager"]}},
            "vllm.cudagraph_capture_sizes: '--enforce-eager' begins with a dash, as options do: leave it out",
        ),
    ],
)
def test_a_configuration_that_is_refused(stub: None, here: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError, match=re.escape(message)), LocalModel(VllmHandler, here, config=config):
        pass


def test_values_are_read_by_vllms_parser(stub: None, here: Path) -> None:
    section = {"cudagraph-capture-sizes": [1, 2], "enforce_eager": False, "speculative_config": {"method": "ngram"}}
    with LocalModel(VllmHandler, here, config={"vllm": section}) as model:
        args = engine_of(model).args
        refusal = ask(model, {"prompt": "a"}, {"speculative": False})
    assert (args.cudagraph_capture_sizes, args.enforce_eager) == ([1, 2], False)
    assert args.speculative_config == {"method": "ngram"}
    assert (args.model, args.served_model_name, args.scheduling_policy) == (str(here), None, "priority")
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith("speculative: this model drafts tokens of all its texts")


def test_the_engine_has_as_many_processes_as_the_server_leases_devices(stub: None, here: Path) -> None:
    config = {"parallelType": "custom", "parallelLevel": 4, "vllm": {"pipeline-parallel-size": 2}}
    with LocalModel(VllmHandler, here, config=config) as model:
        args, described = engine_of(model).args, model.handler.owner.describe()
    assert (args.tensor_parallel_size, args.pipeline_parallel_size) == (2, 2)
    assert args.distributed_executor_backend == "mp"
    assert (described["tensor_parallel_size"], described["pipeline_parallel_size"]) == (2, 2)
    assert args.kv_cache_memory_bytes == host_cache_bytes(4)


def test_without_vllm_the_page_is_named(here: Path) -> None:
    handler = VllmHandler()
    with pytest.raises(HandlerLoadError, match="--handler vllm needs vLLM in the worker's environment"):
        asyncio.run(handler.initialize(Context(ModelInfo("m", model_dir=here))))


def batch() -> Any:
    from msx_core.batch import Batch
    from msx_sdk.request import InferenceRequest
    from msx_sdk.testing import _Collector

    requests = [InferenceRequest("r", {}, operation="generate")]
    return Batch(requests, _Collector(requests))


def test_a_model_whose_calls_nobody_reads_says_so(
    stub: None, here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from vllm.tokenizers.hf import HfTokenizer

    monkeypatch.setattr(HfTokenizer, "chat_template", "{% for tool in tools %}<|call|>{{ tool }}{% endfor %}")
    with LocalModel(VllmHandler, here, config=CONFIG):
        assert "nobody here reads the calls that it asks for" in caplog.text
    caplog.clear()
    with LocalModel(VllmHandler, here, config={**CONFIG, "toolParser": "hermes"}):
        assert "nobody here reads" not in caplog.text
