"""The engine with a runner of integers, whose texts depend on their adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from msx_core.config import SpeculativeOptions
from msx_llm import speculator
from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.catalog import AdapterCatalog
from msx_llm.engine import Engine
from msx_llm.limits import EngineLimits
from msx_llm.paged import PagedPool
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.step import Adapt
from msx_sdk.errors import PredictionError
from msx_sdk.generation import AdapterFiles, GenerateRequest, SamplingParams
from tests.llm.fakes import VOCAB, FakeMixingRunner, FakeRunner, Steps, ids, make_tokenizer, read, request
from tests.llm.runners import limits

CATALOG = AdapterCatalog({name: Adapter(name, f"/{name}") for name in "abc"})


class AdaptingFakeRunner(FakeRunner):
    """Runner whose slots begin with the name of their adapter: nothing of another adapter's text fits it."""

    def __init__(self, slots: int = 4) -> None:
        super().__init__(slots, chunk=16)
        self.inside: dict[int, str] = {0: ""}

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        if adapter is not None:
            self.inside[place] = adapter.name
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


def _loaded(name: str, id: str) -> GenerateRequest:
    params = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True)
    files = AdapterFiles(id=id, folder=f"/{name}", stamp="")
    return GenerateRequest(prompt="the same beginning of all", adapter=name, adapter_files=files, params=params)


def _fail_for_x(adapter: Adapter | None) -> None:
    if adapter is not None and adapter.name == "x":
        raise PredictionError(503, "adapter x: its files have changed")


class BrokenFiles(AdaptingFakeRunner):
    """The files of adapter `x` cannot be read."""

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        _fail_for_x(adapter)
        super().adapt(slot, place, adapter)


class AdaptedMixing(FakeMixingRunner):
    """The state before a text's first token is that of its adapter."""

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        self.first_states[slot] = 0 if adapter is None else sum(map(ord, adapter.name))


class BrokenMixing(FakeMixingRunner):
    """The same, of a runner of mixed steps."""

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        _fail_for_x(adapter)


def _engine(
    runner: FakeRunner, slots: int = 4, places: int = 2, speculative: SpeculativeOptions | None = None
) -> Engine:
    pool = PagedPool(slots, 10 * slots, 4) if isinstance(runner, FakeMixingRunner) else None
    steps, mixes = Steps(runner), pool is not None
    shape: EngineLimits = limits(slots=(slots,))
    return Engine(
        VOCAB,
        make_tokenizer(),
        shape,
        steps.run,
        pool=pool,
        mixes=mixes,
        adapters=CATALOG,
        adapter_places=places,
        speculative=speculative,
    )


@pytest.mark.parametrize("mixes", [False, True])
def test_files_that_cannot_be_read_fail_the_requests_of_their_adapter(mixes: bool) -> None:
    async def test() -> None:
        engine = _engine(BrokenMixing(4, 64, 64, 40, 4) if mixes else BrokenFiles())
        engine.start()
        try:
            asked = [
                _text(engine, "a"),
                _of(engine, _loaded("x", "1")),
                _text(engine, ""),
                _of(engine, _loaded("x", "1")),
            ]
            first, failed, second, again = await asyncio.gather(*asked, return_exceptions=True)
            assert {str(failed), str(again)} == {"adapter x: its files have changed"}
            assert [first, second] == [await _text(engine, name) for name in ("a", "")]
            assert engine.failure is None
        finally:
            await engine.close()

    asyncio.run(test())


async def _of(engine: Engine, request: GenerateRequest) -> str:
    with engine.submit(request) as deltas:
        return "".join([delta.text async for delta in deltas])


def test_an_adapter_of_an_earlier_load_shares_nothing_with_the_next() -> None:
    async def cached(*ids: str) -> list[int]:
        engine = _engine(AdaptingFakeRunner())
        engine.start()
        try:
            found = []
            for id in ids:
                with engine.submit(_loaded("a", id)) as deltas:
                    *_, last = [delta async for delta in deltas]
                found.append(last.usage.cached if last.usage else -1)
            return found
        finally:
            await engine.close()

    first, again, other, back = asyncio.run(cached("1", "1", "2", "1"))
    assert (first, again > 0, other, back > 0) == (0, True, 0, True)


def test_a_text_that_is_cancelled_makes_room_for_another_adapter() -> None:
    """Whether it runs, or waits for a place."""

    async def test() -> None:
        engine = _engine(AdaptingFakeRunner(), places=1)
        engine.start()
        try:
            long = replace(request([7], 60), adapter="a")
            with engine.submit(long) as first, engine.submit(replace(long, adapter="b")) as second:
                await anext(first)
                assert engine.stats().adapters["b"] == (0, 1)
                second.cancel()
                assert engine.stats().adapters["b"] == (0, 0)
                first.cancel()
                assert await _text(engine, "c") == (await _texts(AdaptingFakeRunner(), ["c"], 1))[0]
                assert engine.stats().adapters_loaded == 1
        finally:
            await engine.close()

    asyncio.run(test())


class Known(NgramIndex):
    """Drafts what texts like this one went on with."""

    texts: ClassVar[list[list[int]]] = []

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        found = next((text for text in self.texts if text[: len(tokens)] == list(tokens)), [])
        return found[len(tokens) :][: max(most, 0)]


@pytest.mark.parametrize("mixes", [False, True])
def test_drafts_are_computed_with_the_adapter_of_their_text(mixes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def texts(names: Sequence[str], **options: Any) -> tuple[list[list[int]], int]:
        runner = AdaptedMixing(8, 64, 64, 80, 4) if mixes else AdaptingFakeRunner(8)
        engine = _engine(runner, slots=8, **options)
        engine.start()
        try:
            asked = [replace(request([7, 7, 7], 20), adapter=name) for name in names]
            deltas = await asyncio.gather(*(read(engine.submit(one)) for one in asked))
            return [ids(one) for one in deltas], engine.stats().accepted
        finally:
            await engine.close()

    monkeypatch.setattr(speculator, "NgramIndex", Known)
    monkeypatch.setattr(speculator, "TRIAL", 1e9)
    wanted, _ = asyncio.run(texts(["a", "b", ""]))
    assert len(set(map(tuple, wanted))) == 3
    monkeypatch.setattr(Known, "texts", [[7, 7, 7, *text] for text in wanted])
    found, accepted = asyncio.run(texts(["a", "b", ""], speculative=SpeculativeOptions(tokens=4)))
    assert found == wanted
    assert accepted


def test_a_model_without_room() -> None:
    async def test() -> None:
        engine = Engine(VOCAB, make_tokenizer(), limits(slots=(4,)), Steps(AdaptingFakeRunner()).run)
        with pytest.raises(PredictionError, match=r"no room for adapter a: see adapters\.loadable"):
            engine.submit(_loaded("a", "1"))

    asyncio.run(test())


def test_an_unknown_one() -> None:
    with pytest.raises(PredictionError, match="no adapter 'd'; it has a, b, c"):
        asyncio.run(_texts(AdaptingFakeRunner(), ["d"], 2))
