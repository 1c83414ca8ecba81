"""One small model on the kernels of a CPU and on those of an NPU, emulated: what the tests of both share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.config import SpeculativeOptions
from msx_llm.blocks import BlockPool
from msx_llm.draft_model import DraftModel
from msx_llm.engine import Engine
from msx_llm.limits import EngineLimits
from msx_llm.paged import PagedPool
from msx_llm.planning import pool_of
from msx_llm.sampling import Constraints
from msx_llm.slots import SlotPool
from msx_llm.step import Step, decode, encode
from msx_llm.step_runner import ChoosingRunner, MixingRunner, execute
from tests.llm.fakes import Steps, make_tokenizer
from tests.llm.flat_models import ROUNDING, emulation
from tests.llm.runners import limits, make_runner
from tests.llm.wide_models import make_wide

KINDS = ("cpu", "emulated")
SLOTS, CONTEXT, CHUNK, VOCAB = 4, 256, 64, 260
LOUDER = {"q_norm": 2.0, "o_proj": 8.0}
LOUD_ROUNDING = 2 * ROUNDING["float16"]
"""Sharper attention makes more of what its scores are rounded by."""
EXACT = 1e-5
"""Share of the largest logit: what float32 may differ by, in another order of sums."""


def make_model(folder: Path, window: int | None = None) -> Path:
    """One layer, and a token for each of the tokenizer of the fakes. What a token attends to decides what follows it:
    with random weights alone, texts would hardly change if all that is in the cache was wrong."""
    from safetensors.numpy import load_file, save_file

    changes: dict[str, Any] = {"num_hidden_layers": 1, "layer_types": None, "vocab_size": VOCAB}
    if window is not None:
        changes |= {"use_sliding_window": True, "sliding_window": window, "max_window_layers": 0}
    file = make_wide("qwen3", folder, max_position_embeddings=512, **changes) / "model.safetensors"
    tensors = load_file(file)
    for name, factor in LOUDER.items():
        tensors[f"model.layers.0.self_attn.{name}.weight"] *= np.float32(factor)
    save_file(tensors, file)
    return folder


def shape() -> EngineLimits:
    return limits(slots=(SLOTS,), contexts=(CONTEXT,), prefills=(CHUNK,))


@dataclass
class KernelsUnderTest:
    """`rounding`: of the largest logit. `prefix`: the fewest tokens of a prefix that two texts share. `make`: another
    runner of the same model."""

    runner: Any
    rounding: float
    prefix: int
    make: Callable[[], Any]

    @property
    def mixes(self) -> bool:
        return isinstance(self.runner, MixingRunner)

    def own_places(self) -> None:
        """Each slot gets memory of its own, as a CPU's slots always have."""
        if self.mixes:
            columns = -(-CONTEXT // self.runner.block)
            for slot in range(SLOTS):
                self.runner.assign(slot, range(1 + slot * columns, 1 + (slot + 1) * columns))

    def share(self, source: int, target: int) -> None:
        """The target begins with the first `prefix` positions of the source."""
        if self.mixes:
            self.runner.assign(target, (1 + source * -(-CONTEXT // self.runner.block),))
        else:
            self.runner.copy(source, target, self.prefix)

    def pool_of(self, texts: int, tokens: int) -> BlockPool:
        """Holds texts of so many tokens, but for one block: the last one has to wait when all are as long."""
        if self.mixes:
            return PagedPool(SLOTS, texts * -(-tokens // self.runner.block), self.runner.block)
        block = self.runner.limits.block
        return SlotPool(SLOTS, (texts * -(-tokens // block) - 1) * block, block)

    def near(self, found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=self.rounding * np.abs(wanted).max())


@contextmanager
def kernels_under_test(kind: str, model: Path, graphs: bool = False) -> Iterator[KernelsUnderTest]:
    """`graphs`: of a CPU, for tests with many steps."""
    if kind == "cpu":
        make = partial(make_runner, kind, shape(), folder=model, graphs=graphs)
        yield KernelsUnderTest(make(), EXACT, 16, make)
        return
    import mindspore as ms

    from msx_llm.kernels.ascend.factory import AscendKernels

    with emulation():
        make = partial(make_runner, kind, shape(), folder=model, kernels=AscendKernels(ms.float16))
        runner = make()
        yield KernelsUnderTest(runner, LOUD_ROUNDING, runner.block, make)


class Reference:
    """Logits of whole texts on a CPU, without anything in a cache."""

    def __init__(self, model: Path, graphs: bool = False) -> None:
        long = replace(shape(), slot_buckets=(1,), prefill_buckets=(CONTEXT,), batch_prefill=CONTEXT)
        self._runner = make_runner("reference", long, folder=model, graphs=graphs)

    def logits(self, tokens: list[int]) -> Any:
        """Logits of each token [tokens, vocab]."""
        return self._runner.prefill(0, 0, tokens, all_logits=True)

    def greedy(
        self, prompt: list[int], count: int, adjust: Callable[[Any, list[int]], Any] = lambda logits, text: logits
    ) -> list[int]:
        """`adjust` changes logits [vocab], by the text so far."""
        text: list[int] = []
        while len(text) < count:
            text.append(int(adjust(self.logits([*prompt, *text])[-1].astype(np.float64), text).argmax()))
        return text


class LoggedRunner:
    """Executes steps as other ranks get them."""

    def __init__(self, runner: Any) -> None:
        self._runner, self.log = runner, list[Step]()

    def execute(self, step: Step) -> Any:
        self.log.append(step)
        return execute(self._runner, decode(encode(step)))


class KernelsHarness:
    """An engine on kernels."""

    def __init__(
        self,
        kernels: KernelsUnderTest,
        pool: BlockPool | None = None,
        gated: bool = False,
        chooses: bool = True,
        speculative: SpeculativeOptions | None = None,
        draft_model: DraftModel | None = None,
    ) -> None:
        tokenizer = make_tokenizer()
        chooses = chooses and isinstance(kernels.runner, ChoosingRunner)
        self.runner = LoggedRunner(kernels.runner)
        self.steps = Steps(self.runner, gated)  # type: ignore[arg-type]
        self.engine = Engine(
            VOCAB,
            tokenizer,
            kernels.runner.limits,
            self.steps.run,
            constraints=Constraints(tokenizer.to_json(), tokenizer.eos, VOCAB),
            pool=pool or pool_of(kernels.runner, SLOTS),
            mixes=kernels.mixes,
            chooses=chooses,
            follows=chooses and speculative is None,
            speculative=speculative,
            draft_model=draft_model,
        )

    async def __aenter__(self) -> KernelsHarness:
        self.engine.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.engine.close()
