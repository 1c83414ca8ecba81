"""The engine on a CPU with a model whose texts have states: texts are those of a model that reads them whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msx_llm.slots import SlotPool
from msx_llm.state_pool import StatePool
from msx_llm.step import CopyPositions, KeepState
from tests.llm.fakes import ids, read, request
from tests.llm.kernels_under_test import EXACT, SLOTS, VOCAB, KernelsHarness, KernelsUnderTest, Reference, shape
from tests.llm.runners import make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

Scene = Callable[[KernelsHarness], Awaitable[None]]
LAYERS: dict[str, Any] = {
    "num_hidden_layers": 2,
    "layer_types": ["linear_attention", "full_attention"],
    "mlp_only_layers": [0, 1],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ms.runtime.launch_blocking()
    return make_states(tmp_path_factory.mktemp("states") / "model")


def make_states(folder: Path) -> Path:
    """Make a model whose state decides what follows."""
    from safetensors.numpy import load_file, save_file

    make_wide("qwen3_next", folder, vocab_size=VOCAB, max_position_embeddings=512, **LAYERS)
    tensors = load_file(folder / "model.safetensors")
    for name, factor in {"0.linear_attn.out_proj": 8.0, "1.self_attn.o_proj": 4.0}.items():
        tensors[f"model.layers.{name}.weight"] *= factor
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def reference(model: Path) -> Reference:
    return Reference(model, graphs=True)


@pytest.fixture(scope="module")
def kernels(model: Path) -> KernelsUnderTest:
    make = partial(make_runner, "states", shape(), folder=model, graphs=True)
    return KernelsUnderTest(make(), EXACT, 16, make)


def play(scene: Scene, kernels: KernelsUnderTest, **options: Any) -> None:
    async def with_harness() -> None:
        async with KernelsHarness(kernels, **options) as harness:
            assert isinstance(harness.engine._pool, StatePool)
            await scene(harness)

    asyncio.run(with_harness())


async def answer(harness: KernelsHarness, prompt: list[int], count: int, **params: Any) -> Any:
    return await read(harness.engine.submit(request(prompt, count, **params)))


def tokens(first: int, count: int) -> list[int]:
    return [(first + 7 * place + place * place) % VOCAB for place in range(count)]


def test_a_state_decides_what_follows(reference: Reference) -> None:
    """Else the tests below would see nothing of it."""
    texts = {tuple(reference.greedy([*tokens(first, 40), 5, 6, 7], 6)) for first in range(4)}
    assert len(texts) == 4


def test_prompts_in_chunks_beside_texts_that_run(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompts = [tokens(1, 5), tokens(2, 30), tokens(3, 150)]

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 8) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 8) for prompt in prompts]

    play(scene, kernels)


def test_the_next_turn_goes_on_where_the_last_one_ended(kernels: KernelsUnderTest, reference: Reference) -> None:
    async def scene(harness: KernelsHarness) -> None:
        said = [*tokens(4, 70), *ids(await answer(harness, tokens(4, 70), 9))]
        again = [*said, *tokens(9, 20)]
        deltas = await answer(harness, again, 6)
        assert deltas[-1].usage.cached == len(said) - 1
        assert ids(deltas) == reference.greedy(again, 6)

    play(scene, kernels)


def test_the_third_prompt_with_a_beginning_finds_its_state(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompts = [[*tokens(4, 70), *tokens(first, 15)] for first in (11, 12, 13, 14)]

    async def scene(harness: KernelsHarness) -> None:
        found = [await answer(harness, prompt, 6) for prompt in prompts]
        assert [deltas[-1].usage.cached for deltas in found] == [0, 0, 70, 70]
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 6) for prompt in prompts]
        kept = [step for step in harness.runner.log if isinstance(step, KeepState)]
        copied = [step for step in harness.runner.log if isinstance(step, CopyPositions)]
        assert (len(kept), len(copied)) == (1, 2)

    play(scene, kernels)


def test_texts_of_one_request(kernels: KernelsUnderTest, reference: Reference) -> None:
    async def scene(harness: KernelsHarness) -> None:
        deltas = await answer(harness, tokens(5, 50), 6, n=3)
        assert [ids(deltas, index) for index in range(3)] == [reference.greedy(tokens(5, 50), 6)] * 3
        assert any(isinstance(step, CopyPositions) for step in harness.runner.log), (
            "the third has the second one's state"
        )

    play(scene, kernels)


def test_texts_that_are_preempted_come_back(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompts = [tokens(first, 120) for first in (11, 12, 13)]
    block = kernels.runner.limits.block

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 20) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 20) for prompt in prompts]
        assert harness.engine.stats().preempted

    play(scene, kernels, pool=StatePool(SLOTS, (3 * -(-140 // block) - 1) * block, block))


def test_a_text_that_is_cancelled_leaves_nothing(kernels: KernelsUnderTest, reference: Reference) -> None:
    async def scene(harness: KernelsHarness) -> None:
        left = harness.engine.submit(request(tokens(1, 20), 100))
        stays = asyncio.create_task(answer(harness, tokens(2, 20), 12))
        await anext(aiter(left))
        left.cancel()
        assert ids(await stays) == reference.greedy(tokens(2, 20), 12)
        assert ids(await answer(harness, tokens(1, 20), 12)) == reference.greedy(tokens(1, 20), 12)

    play(scene, kernels)


def test_a_prompt_that_is_scored_computes_all_of_its_tokens(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompt = tokens(7, 70)
    text = reference.greedy(prompt, 4)

    async def scene(harness: KernelsHarness) -> None:
        await answer(harness, prompt, 1)
        deltas = await answer(harness, prompt, 4, logprobs=0, prompt_logprobs=True)
        assert [token.id for token in deltas[0].prompt_tokens] == prompt
        assert ids(deltas) == text

    play(scene, kernels)


def test_without_knowing_of_states_texts_would_be_wrong(kernels: KernelsUnderTest, reference: Reference) -> None:
    """A pool of keys and values alone finds beginnings whose states are gone: the runner refuses them."""
    first, second = [*tokens(4, 40), 1, 2], [*tokens(4, 40), 3, 4, 5]

    async def scene(harness: KernelsHarness) -> None:
        await answer(harness, first, 3)
        with pytest.raises(Exception, match="has no state behind 40 tokens"):
            await answer(harness, second, 3)

    async def with_harness() -> None:
        block = kernels.runner.limits.block
        async with KernelsHarness(kernels, pool=SlotPool(SLOTS, 1024, block)) as harness:
            await scene(harness)

    asyncio.run(with_harness())
