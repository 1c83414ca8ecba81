"""A thousand requests of all kinds to the engine with a real model: no text depends on the others, nothing is left."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest

from msx_frontend.grpc_api.inference import SERVICE
from msx_frontend.grpc_api.messages import message_class
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server, wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

REQUESTS, AT_ONCE = 1000, 32
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
LENGTHS = (1, 3, 8, 12)
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
    config = few_graphs((EXAMPLE / "model-config.yaml").read_text()) + tight
    pack_llama(new_store(folder), "llama", config)
    with run_server(folder, "--models", "llama.mar", ready=False) as running:
        running.wait_ready(LOAD)
        yield running


class Client:
    def __init__(self, server: RunningServer, http: httpx.AsyncClient, channel: grpc.aio.Channel) -> None:
        self._http, self._random = http, random.Random(0)
        self._stream = channel.unary_stream(
            f"/{SERVICE}/StreamPredictions", Request.SerializeToString, Response.FromString
        )
        self._room = asyncio.Semaphore(AT_ONCE)
        self.alone: dict[tuple[str, int], str] = {}
        self.outcomes: Counter[str] = Counter()

    async def learn(self) -> None:
        """What every greedy request gets when there is no other."""
        for prompt in PROMPTS:
            whole = await self.complete(prompt=prompt, max_tokens=max(LENGTHS), temperature=0, logprobs=0)
            tokens = whole["choices"][0]["logprobs"]["tokens"]
            for length in LENGTHS:
                self.alone[prompt, length] = "".join(tokens[:length])

    async def ask(self, number: int) -> None:
        kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        prompt, length = self._random.choice(PROMPTS), self._random.choice(LENGTHS)
        async with self._room:
            await getattr(self, kind)(prompt, length, number)
        self.outcomes[kind] += 1

    async def greedy(self, prompt: str, length: int, number: int) -> None:
        reply = await self.complete(prompt=prompt, max_tokens=length, temperature=0, priority=number % 3)
        assert reply["choices"][0]["text"] == self.alone[prompt, length]

    async def sampled(self, prompt: str, length: int, number: int) -> None:
        options = {"temperature": 1.3, "top_p": 0.9, "top_k": 40, "seed": number, "frequency_penalty": 0.5}
        reply = await self.complete(prompt=prompt, max_tokens=length, **options)
        assert reply["usage"]["completion_tokens"] <= length

    async def several(self, prompt: str, length: int, number: int) -> None:
        reply = await self.complete(prompt=prompt, max_tokens=length, temperature=1, n=3, best_of=4, seed=number)
        assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]

    async def left(self, prompt: str, length: int, number: int) -> None:
        """Before the first token, or after some."""
        body = {"model": "llama", "prompt": prompt, "max_tokens": 40, "stream": True, "ignore_eos": True}
        async with self._http.stream("POST", "/v1/completions", json=body) as reply:
            assert reply.status_code == 200
            async for _ in reply.aiter_raw():
                if self._random.random() < 0.3:
                    break

    async def timed(self, prompt: str, length: int, number: int) -> None:
        fields = {"prompt": prompt.encode(), "max_new_tokens": b"150", "ignore_eos": b"true"}
        call = self._stream(Request(model_name="llama", input=fields), timeout=self._random.uniform(0.01, 0.3))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    async def complete(self, **body: Any) -> Any:
        reply = await self._http.post("/v1/completions", json={"model": "llama", **body})
        assert reply.status_code == 200, reply.text
        return json.loads(reply.content)


def test_a_thousand_requests(server: RunningServer) -> None:
    async def ask_all() -> Counter[str]:
        limits = httpx.Limits(max_connections=AT_ONCE)
        async with (
            httpx.AsyncClient(base_url=server.info["inference"], timeout=120, limits=limits, trust_env=False) as http,
            grpc.aio.insecure_channel(server.info["grpc_inference"]) as channel,
        ):
            client = Client(server, http, channel)
            await client.learn()
            await asyncio.gather(*(client.ask(number) for number in range(REQUESTS)))
            return client.outcomes

    outcomes = asyncio.run(ask_all())
    assert sum(outcomes.values()) == REQUESTS
    assert set(outcomes) == set(KINDS)
    gauges = ("msx_llm_running", "msx_llm_waiting", "msx_llm_blocks_used", "msx_queue_depth")
    wait_until(lambda: not any(value(server, gauge) for gauge in gauges), "nothing is left", server.tail)
    assert value(server, "msx_llm_prefix_hit_tokens") > 0
    assert server.metric("msx_worker_restarts_total", model="llama") == 0


def value(server: RunningServer, gauge: str) -> float:
    label = {"model": "llama"} if gauge == "msx_queue_depth" else {"ModelName": "llama"}
    return server.metric(gauge, **label)
