"""Runs in an interpreter with vLLM: one engine that vLLM's own server and MSX's handler ask in turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec

from msx_core.generation.wire import decode
from msx_sdk.generation import GenerateDelta, GenerateRequest, SamplingParams
from msx_sdk.testing import LocalModel
from tests.vllm.request_bodies import COMPLETIONS, MODEL

Asked = list[dict[str, Any]]
APART = 1e-3
"""The most by which log-probabilities of two likeliest tokens differ where texts do."""
WORDS = ("the sea", "a ship on the water", "light", "one two three four", "who", "rain falls", "in the end", "no")
OURS = frozenset({"skip_clone"})
"""Members of SamplingParams that do not reach the model."""
OF_COMPILER = frozenset({"x-guidance"})
"""Members of schemas that say which keywords the compiler ignores, as our engine does."""


class Engine:
    """Notes what reaches the core of a real engine."""

    def __init__(self, model: LocalModel) -> None:
        self.model, self.handler = model, model.handler.owner
        self._engine = self.handler.llm._engine
        self._seen: list[Any] = []
        core = self._engine.engine_core
        add = core.add_request_async

        async def noting(request: Any) -> None:
            self._seen.append(request)
            await add(request)

        core.add_request_async = noting

    def run(self, work: Any) -> Any:
        return self.model._loop.run_until_complete(work)

    def seen(self) -> Asked:
        """Requests that have come since the last time, by the ids of their prompts and their seeds."""
        found, self._seen = self._seen, []
        return [
            _plain(one) for one in sorted(found, key=lambda one: (one.prompt_token_ids, one.sampling_params.seed or 0))
        ]

    async def theirs(self) -> httpx.AsyncClient:
        """A client of vLLM's own server on this engine."""
        from vllm.entrypoints.launchers.api_server.app_state import init_app_state
        from vllm.entrypoints.launchers.app import build_app
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        folder = str(self.model.context.model_dir)
        args = make_arg_parser(FlexibleArgumentParser()).parse_args(["--model", folder, "--served-model-name", MODEL])
        tasks = await self._engine.get_supported_tasks()
        app = build_app(args, tasks, self._engine.model_config)
        await init_app_state(self._engine, app.state, args, tasks)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://vllm", timeout=120)

    async def ours(self, requests: list[GenerateRequest]) -> list[list[GenerateDelta]]:
        """The deltas of requests that are answered at once."""
        return await asyncio.gather(*map(self._deltas, requests, count()))

    async def _deltas(self, request: GenerateRequest, number: int) -> list[GenerateDelta]:
        context = SimpleNamespace(get_request_id=lambda place: f"request-{number}")
        return [delta async for delta in self.handler.generate(request, context)]


def differences(model: LocalModel, requests: Path) -> list[str]:
    """Differences between what the two servers ask the engine for, and between the texts that they answer."""
    engine = Engine(model)
    client = engine.run(engine.theirs())
    return [wrong for one in json.loads(requests.read_text()) for wrong in _compared(engine, client, one)]


def _compared(engine: Engine, client: httpx.AsyncClient, one: dict[str, Any]) -> Iterator[str]:
    reply = engine.run(client.post(one["path"], json=one["body"]))
    theirs = engine.seen()
    ours = engine.run(engine.ours([decode(bytes.fromhex(text), GenerateRequest) for text in one["ours"]]))
    mine = engine.seen()
    if reply.status_code != 200 or len(theirs) != len(mine) or not theirs:
        yield f"{one['name']}: {reply.status_code} {reply.text[:300]} {len(theirs)} {len(mine)}"
        return
    for number, (their, my) in enumerate(zip(theirs, mine, strict=True)):
        for name in their.keys() | my.keys():
            if their.get(name) != my.get(name):
                yield f"{one['name']} {number}: {name}: vLLM's {their.get(name)!r}, MSX's {my.get(name)!r}"
    if not one["body"].get("stream") and not one["body"].get("echo"):
        said = [_said(choice) for choice in reply.json()["choices"]]
        written = ["".join(d.text for d in deltas if d.index == at) for deltas in ours for at in _numbers(deltas)]
        if said != written:
            yield f"{one['name']}: vLLM's texts {said!r}, MSX's {written!r}"


def _numbers(deltas: list[GenerateDelta]) -> list[int]:
    return sorted({delta.index for delta in deltas})


def _said(choice: dict[str, Any]) -> str:
    return str(choice["text"] if "text" in choice else choice["message"]["content"])


def _plain(request: Any) -> dict[str, Any]:
    """The members that say what is computed."""
    params = msgspec.structs.asdict(request.sampling_params)
    lora = request.lora_request and request.lora_request.lora_name
    own = {name: value for name, value in params.items() if name not in OURS}
    own["top_k"] = max(own["top_k"], 0)  # -1 is 0
    if (constraint := own["structured_outputs"]) is not None and isinstance(constraint.json, str):
        constraint.json = {name: it for name, it in json.loads(constraint.json).items() if name not in OF_COMPILER}
    return {"ids": list(request.prompt_token_ids), "lora": lora, "priority": request.priority, **own}


def together(model: LocalModel) -> list[str]:
    """Texts of several at once that differ from those of one at a time, where more than the order of sums does."""
    engine = Engine(model)
    client = engine.run(engine.theirs())
    params = SamplingParams(max_tokens=24, temperature=0, logprobs=5)
    requests = [GenerateRequest(prompt=words, params=params, stream=False) for words in WORDS]
    found = engine.run(engine.ours(requests))
    return [
        wrong for words, deltas in zip(WORDS, found, strict=True) for wrong in _apart(engine, client, words, deltas)
    ]


def _apart(engine: Engine, client: httpx.AsyncClient, words: str, deltas: list[GenerateDelta]) -> Iterator[str]:
    body = {"model": MODEL, "prompt": words, "max_tokens": 24, "temperature": 0, "repetition_penalty": 1}
    reply = engine.run(client.post(COMPLETIONS, json={**body, "return_token_ids": True})).json()
    theirs = reply["choices"][0]["token_ids"]
    ours = [token for delta in deltas for token in delta.tokens]
    for mine, their in zip(ours, theirs, strict=True):
        if mine.id != their:
            scores = {top.id: top.logprob for top in mine.top}
            if abs(scores.get(their, -100.0) - (mine.logprob or 0.0)) >= APART:
                yield f"{words}: {mine.id} and {their} of {scores}"
            return
