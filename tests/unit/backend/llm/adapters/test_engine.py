"""The engine with a runner of integers, whose texts depend on their adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from msx_backend.llm.adapters.adapter import Adapter
from msx_backend.llm.adapters.catalog import AdapterCatalog
from msx_backend.llm.engine import Engine
from msx_backend.llm.limits import EngineLimits
from msx_backend.llm.step import Adapt
from msx_sdk.errors import PredictionError
from msx_sdk.generation import GenerateRequest, SamplingParams
from tests.unit.backend.llm.fakes import VOCAB, FakeRunner, Steps, make_tokenizer
from tests.unit.backend.llm.runners import limits

CATALOG = AdapterCatalog({name: Adapter(name, f"/{name}", 8) for name in "abc"})


class AdaptingFakeRunner(FakeRunner):
    """What is in a slot begins with the name of its adapter: nothing of another adapter's text fits it."""

    def __init__(self) -> None:
        super().__init__(chunk=16)
        self.inside: dict[int, str] = {0: ""}

    def adapt(self, slot: int, place: int, source: str) -> None:
        if source:
            self.inside[place] = source
        state = sum(map(ord, self.inside[place]))
        if self.cache[slot, 0] != state:
            self.cache[slot] = -1
            self.cache[slot, 0] = state

    def copy(self, source: int, target: int, length: int) -> None:
        assert self.cache[source, 0] == self.cache[target, 0]
        super().copy(source, target, length)


async def _texts(runner: AdaptingFakeRunner, adapters: Sequence[str], places: int) -> list[str]:
    shape: EngineLimits = limits(slots=(4,))
    steps = Steps(runner)
    engine = Engine(VOCAB, make_tokenizer(), shape, steps.run, adapters=CATALOG, adapter_places=places)
    engine.start()
    try:
        return await asyncio.gather(*(_text(engine, adapter) for adapter in adapters))
    finally:
        await engine.close()


async def _text(engine: Engine, adapter: str) -> str:
    params = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True)
    request = GenerateRequest(prompt="the same beginning of all", adapter=adapter, params=params)
    with engine.submit(request) as deltas:
        return "".join([delta.text async for delta in deltas])


def test_texts_of_many_adapters_at_once_are_those_of_each_alone() -> None:
    asked = ["a", "", "b", "c", "a", "", "c"]
    alone = {name: asyncio.run(_texts(AdaptingFakeRunner(), [name], 2))[0] for name in set(asked)}
    assert len(set(alone.values())) == 4
    runner = AdaptingFakeRunner()
    assert asyncio.run(_texts(runner, asked, 2)) == [alone[name] for name in asked]
    assert {step.place for step in runner.log if isinstance(step, Adapt)} == {0, 1, 2}


def test_an_unknown_one() -> None:
    with pytest.raises(PredictionError, match="no adapter 'd'; it has a, b, c"):
        asyncio.run(_texts(AdaptingFakeRunner(), ["d"], 2))
