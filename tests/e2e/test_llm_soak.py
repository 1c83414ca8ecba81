"""Many requests of all kinds to the engine with a real model, on one rank and over two: no text depends on the
others, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server, wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.collectives]

AT_ONCE = 32
SUBJECTS = [
    "Exceptions are",
    "An object",
    "Functions",
    "A class",
    "Sets",
    "The with statement",
    "Modules are",
    "If the",
]
LONG = "The lambda expression " * 20
PROMPTS = [*SUBJECTS, LONG, LONG + "is", LONG + "has a value", "def " * 60]
MOST = 16
"""Tokens of a text that is compared."""
ROUNDING = 1e-3
"""Logits of two batch widths differ by less: where the two likeliest are as close, either may be chosen."""
MODELS = {"one": ("model-config.yaml", 60), "tp2": ("model-config-tp2.yaml", 20), "pp2": ("model-config-pp2.yaml", 20)}
"""With their share of the requests, in percent."""
KINDS = {"greedy": 50, "sampled": 20, "several": 5, "left": 15, "timed": 10}
"""In percent."""

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
LOAD = 240.0
"""Seconds, on a busy machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("soak")
    # Much less than all slots full: texts wait, and may have to give their place back.
    tight = "maxBatchTotalTokens: 384\njobQueueSize: 1000\n"
    store = new_store(folder)
    for name, (config, _) in MODELS.items():
        pack_llama(store, name, few_graphs((EXAMPLE / config).read_text()) + tight)
    with run_server(folder, "--models", *(f"{name}.mar" for name in MODELS), ready=False) as running:
        running.wait_ready(LOAD)
        yield running


class Alone(NamedTuple):
    """What a greedy request gets when there is no other: its tokens, and how much likelier each is than the next."""

    tokens: list[str]
    margins: list[float]

    def agrees(self, tokens: list[str], length: int) -> bool:
        """With a text of so many tokens at most; behind a difference by rounding, texts may go different ways."""
        for alone, token, margin in zip(self.tokens, tokens, self.margins, strict=False):
            if alone != token:
                return margin < ROUNDING
        return len(tokens) == min(length, len(self.tokens))


class Client:
    def __init__(self, server: RunningServer, http: httpx.AsyncClient, channel: grpc.aio.Channel) -> None:
        self._http, self._random = http, random.Random(0)
        self._stream = channel.unary_stream(
            f"/{SERVICE}/StreamPredictions", Request.SerializeToString, Response.FromString
        )
        self._room = asyncio.Semaphore(AT_ONCE)
        self.alone: dict[tuple[str, str], Alone] = {}
        self.outcomes: Counter[str] = Counter()

    async def learn(self) -> None:
        for model in MODELS:
            for prompt in PROMPTS:
                tokens, margins = await self.greedy_tokens(model, prompt, MOST, logprobs=2)
                self.alone[model, prompt] = Alone(tokens, margins)

    async def greedy_tokens(self, model: str, prompt: str, length: int, **options: int) -> Any:
        """The tokens' texts, and how much likelier each was than the next, if `logprobs` are asked for."""
        body = {"prompt": prompt, "max_tokens": length, "temperature": 0, "logprobs": 0, **options}
        logprobs = (await self.complete(model, **body))["choices"][0]["logprobs"]
        tops = [top.values() for top in logprobs["top_logprobs"] if top]
        return logprobs["tokens"], [max(top) - min(top) for top in tops]

    async def ask(self, number: int) -> None:
        kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        (model,) = self._random.choices(list(MODELS), [share for _, share in MODELS.values()])
        prompt, length = self._random.choice(PROMPTS), self._random.randint(1, MOST)
        async with self._room:
            await getattr(self, kind)(model, prompt, length, number)
        self.outcomes[kind] += 1

    async def greedy(self, model: str, prompt: str, length: int, number: int) -> None:
        tokens, _ = await self.greedy_tokens(model, prompt, length, priority=number % 3)
        alone = self.alone[model, prompt]
        assert alone.agrees(tokens, length), (model, prompt, tokens, alone)

    async def sampled(self, model: str, prompt: str, length: int, number: int) -> None:
        options = {"temperature": 1.3, "top_p": 0.9, "top_k": 40, "seed": number, "frequency_penalty": 0.5}
        reply = await self.complete(model, prompt=prompt, max_tokens=length, **options)
        assert reply["usage"]["completion_tokens"] <= length

    async def several(self, model: str, prompt: str, length: int, number: int) -> None:
        options = {"temperature": 1, "n": 3, "best_of": 4, "seed": number}
        reply = await self.complete(model, prompt=prompt, max_tokens=length, **options)
        assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]

    async def left(self, model: str, prompt: str, length: int, number: int) -> None:
        """Before the first token, or after some."""
        body = {"model": model, "prompt": prompt, "max_tokens": 40, "stream": True, "ignore_eos": True}
        async with self._http.stream("POST", "/v1/completions", json=body) as reply:
            assert reply.status_code == 200
            async for _ in reply.aiter_raw():
                if self._random.random() < 0.3:
                    break

    async def timed(self, model: str, prompt: str, length: int, number: int) -> None:
        fields = {"prompt": prompt.encode(), "max_new_tokens": b"150", "ignore_eos": b"true"}
        call = self._stream(Request(model_name=model, input=fields), timeout=self._random.uniform(0.01, 0.3))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    async def complete(self, model: str, **body: Any) -> Any:
        reply = await self._http.post("/v1/completions", json={"model": model, **body})
        assert reply.status_code == 200, reply.text
        return json.loads(reply.content)


@pytest.mark.parametrize("requests", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_requests_of_all_kinds(server: RunningServer, requests: int) -> None:
    async def ask_all() -> Counter[str]:
        limits = httpx.Limits(max_connections=AT_ONCE)
        async with (
            httpx.AsyncClient(base_url=server.info["inference"], timeout=120, limits=limits, trust_env=False) as http,
            grpc.aio.insecure_channel(server.info["grpc_inference"]) as channel,
        ):
            client = Client(server, http, channel)
            await client.learn()
            await asyncio.gather(*(client.ask(number) for number in range(requests)))
            return client.outcomes

    outcomes = asyncio.run(ask_all())
    assert sum(outcomes.values()) == requests
    assert set(outcomes) == set(KINDS)
    wait_until(lambda: not any(left(server)), "nothing is left", server.tail)
    for model in MODELS:
        assert server.metric("msx_llm_prefix_hit_tokens", ModelName=model) > 0
        assert server.metric("msx_worker_restarts_total", model=model) == 0


def left(server: RunningServer) -> Iterator[float]:
    """Of texts, slots and blocks of the engines, and jobs of the frontend."""
    for model in MODELS:
        for gauge in ("msx_llm_running", "msx_llm_waiting", "msx_llm_blocks_used"):
            yield server.metric(gauge, ModelName=model)
        for gauge in ("msx_queue_depth", "msx_requests_in_flight"):
            yield server.metric(gauge, model=model)
