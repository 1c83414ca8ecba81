"""Requests of all kinds, many at once, to the engine with a real model on one rank and over two."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any, NamedTuple

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import RunningServer

AT_ONCE = 32
SUBJECTS = ["Exceptions are", "Functions", "The with statement", "If the"]
LONG = "The lambda expression " * 20
PROMPTS = [*SUBJECTS, LONG, LONG + "is", LONG + "has a value", "def " * 60]
MOST = 16
"""Tokens of a text that is compared."""
ROUNDING = 1e-3
"""Logits of two batch widths differ by less: where the two likeliest are as close, either may be chosen."""
SHARES = {"one": 60, "tp2": 20, "pp2": 20}
"""Percent of the requests, by model."""
KINDS = {"greedy": 50, "sampled": 20, "several": 5, "left": 15, "timed": 10}
"""In percent."""

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")


class Alone(NamedTuple):
    """Answer to a greedy request when there is no other: its tokens, and how much likelier each is than the next."""

    tokens: list[str]
    margins: list[float]

    def agrees(self, tokens: list[str], length: int) -> bool:
        """With a text of so many tokens at most; behind a difference by rounding, texts may go different ways."""
        for alone, token, margin in zip(self.tokens, tokens, self.margins, strict=False):
            if alone != token:
                return margin < ROUNDING
        return len(tokens) == min(length, len(self.tokens))


class Client:
    def __init__(self, http: httpx.AsyncClient, channel: grpc.aio.Channel, key: str) -> None:
        self._http, self._random = http, random.Random(0)
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._stream = channel.unary_stream(
            f"/{SERVICE}/StreamPredictions", Request.SerializeToString, Response.FromString
        )
        self._room = asyncio.Semaphore(AT_ONCE)
        self.alone: dict[tuple[str, str], Alone] = {}
        self.outcomes: Counter[str] = Counter()

    async def learn(self) -> None:
        for model in SHARES:
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
        (model,) = self._random.choices(list(SHARES), list(SHARES.values()))
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
        request, timeout = Request(model_name=model, input=fields), self._random.uniform(0.01, 0.3)
        call = self._stream(request, timeout=timeout, metadata=self._metadata)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    async def complete(self, model: str, **body: Any) -> Any:
        reply = await self._http.post("/v1/completions", json={"model": model, **body})
        assert reply.status_code == 200, reply.text
        return json.loads(reply.content)


async def ask_all(server: RunningServer, key: str, requests: int) -> Counter[str]:
    """-> how many of each kind were answered"""
    limits = httpx.Limits(max_connections=AT_ONCE)
    options: Any = {"headers": {"authorization": f"Bearer {key}"}, "timeout": 120, "limits": limits, "trust_env": False}
    async with (
        httpx.AsyncClient(base_url=server.info["inference"], **options) as http,
        grpc.aio.insecure_channel(server.info["grpc_inference"]) as channel,
    ):
        client = Client(http, channel, key)
        await client.learn()
        await asyncio.gather(*(client.ask(number) for number in range(requests)))
        return client.outcomes
