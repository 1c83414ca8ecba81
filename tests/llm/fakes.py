"""A language model of integers: its logits depend on every token before, by way of what is in the cache."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import decoders, models, pre_tokenizers

from msx_core.config import SpeculativeOptions
from msx_llm.blocks import blocks_for
from msx_llm.draft_model import DraftModel
from msx_llm.engine import Engine
from msx_llm.handle import RequestHandle
from msx_llm.limits import EngineLimits
from msx_llm.paged import PagedPool
from msx_llm.sampling import Constraints
from msx_llm.sampling.choice import TOKEN_MADE, TokenChoice
from msx_llm.state_pool import StatePool
from msx_llm.step import UNREAD, Array, Decode, Prefill, Step, TokenChunk, decode, encode
from msx_llm.step_runner import execute
from msx_llm.text import Tokenizer
from msx_sdk.generation import GenerateDelta, GenerateRequest, SamplingParams

EMPTY = -1
MODULUS = 1_000_003


def make_tokenizer() -> Tokenizer:
    """256 tokens that are bytes, and `<|end|>`, which is 256."""
    vocab = {letter: id for id, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = RawTokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return Tokenizer(tokenizer, eos=frozenset({END}))


END = 256
VOCAB = 260


def after(state: int, token: int) -> int:
    """State of the model after one token more."""
    return (state * 31 + token * 7919 + 17) % MODULUS


@lru_cache(1 << 16)
def logits_of(state: int) -> Array:
    """The end, now and then."""
    rng = np.random.default_rng(state)
    logits = rng.standard_normal(VOCAB, np.float32)
    logits[END] = -20 if state % 29 else 20
    logits.setflags(write=False)
    return logits


class FakeRunner:
    """Refuses to look at what was never written. `log` has every step; `fails` says which raise."""

    def __init__(self, slots: int = 4, context: int = 64, chunk: int = 64) -> None:
        self.vocab_size, self.slots, self.context, self.chunk = VOCAB, slots, context, chunk
        self.cache = np.full((slots, context + 1), EMPTY, np.int64)
        self.cache[:, 0] = 0
        self.log: list[Step] = []
        self.poison: int | None = None
        """After this token, the logits are not numbers."""
        self.fails: Callable[[Step], Exception | None] = lambda step: None

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        assert 0 < len(tokens) <= self.chunk
        states = [self._append(slot, start + place, token) for place, token in enumerate(tokens)]
        return np.stack([logits_of(state) for state in states]) if all_logits else logits_of(states[-1])

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        assert len(slots) <= self.slots
        rows = zip(slots, positions, tokens, strict=True)
        logits = np.stack([logits_of(self._append(*row)) for row in rows])
        logits[[token == self.poison for token in tokens]] = np.nan
        return logits

    def copy(self, source: int, target: int, length: int) -> None:
        assert source != target
        assert (self.cache[source, : length + 1] != EMPTY).all()
        self.cache[target, 1:] = EMPTY
        self.cache[target, 1 : length + 1] = self.cache[source, 1 : length + 1]

    def warm_up(self, report: Callable[[str], None]) -> None:
        report("nothing")

    def sleep(self, weights: bool) -> None:
        self.cache[:, 1:] = EMPTY

    def wake(self) -> None:
        return None

    def execute(self, step: Step) -> Array | None:
        self.log.append(step)
        if error := self.fails(step):
            raise error
        return execute(self, decode(encode(step)))

    def _append(self, slot: int, position: int, token: int) -> int:
        before = self.cache[slot, position]
        assert before != EMPTY, f"slot {slot} has nothing before position {position}"
        self.cache[slot, position + 1 :] = EMPTY
        self.cache[slot, position + 1] = after(int(before), token)
        return int(self.cache[slot, position + 1])


class FakeGroupingRunner(FakeRunner):
    """Takes several prompts in one step."""

    def prefills(self, chunks: Sequence[TokenChunk]) -> Array:
        assert 1 < len(chunks) <= self.slots
        return np.stack([self.prefill(chunk.slot, chunk.start, chunk.tokens) for chunk in chunks])


class FakeStretchingRunner(FakeRunner):
    """Runner whose states depend on the length of the text that `stretch` was given."""

    def stretch(self, slot: int, length: int) -> None:
        if length != self.cache[slot, 0]:
            self.cache[slot] = EMPTY
            self.cache[slot, 0] = length


class FakeStateRunner(FakeRunner):
    """Runner that has the last state of each text, and none before it."""

    keeps_states = True

    def __init__(self, slots: int = 4, context: int = 64, chunk: int = 64) -> None:
        super().__init__(slots, context, chunk)
        self.kept = np.full_like(self.cache, EMPTY)

    def copy(self, source: int, target: int, length: int) -> None:
        found = self.cache[source, length] if self.cache[source, length] != EMPTY else self.kept[source, length]
        assert found != EMPTY, f"slot {source} has no state behind {length} tokens"
        self.cache[target, 1:] = EMPTY
        self.cache[target, length] = found
        if source != target:
            self.keep_state(target)

    def keep_state(self, slot: int) -> None:
        self.kept[slot] = self.cache[slot]

    def _append(self, slot: int, position: int, token: int) -> int:
        after = super()._append(slot, position, token)
        self.cache[slot, 1 : position + 1] = EMPTY
        return after


class FakePagedRunner(FakeRunner):
    """Blocks of `block` tokens, `blocks` of them."""

    def __init__(self, slots: int, context: int, chunk: int, blocks: int, block: int) -> None:
        super().__init__(slots, context, chunk)
        self._block = self.block = block
        self.blocks = blocks
        self._memory = np.full((blocks, block), EMPTY, np.int64)
        self._tables: dict[int, tuple[int, ...]] = {}
        self.first_states: dict[int, int] = {}
        """Before the first token of a slot; 0 where nothing says so."""

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        self._tables[slot] = tuple(blocks)

    def copy(self, source: int, target: int, length: int) -> None:
        raise AssertionError("a paged cache shares")

    def _append(self, slot: int, position: int, token: int) -> int:
        before = self.first_states.get(slot, 0) if position == 0 else self._at(slot, position - 1)
        assert before != EMPTY, f"slot {slot} has nothing before position {position}"
        number, place = divmod(position, self._block)
        self._memory[self._tables[slot][number], place:] = EMPTY
        self._memory[self._tables[slot][number], place] = after(before, token)
        return after(before, token)

    def _at(self, slot: int, position: int) -> int:
        number, place = divmod(position, self._block)
        return int(self._memory[self._tables[slot][number], place])


class FakeMixingRunner(FakePagedRunner):
    """Appends to any number of slots in one step."""

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Array:
        assert sum(len(chunk.tokens) for chunk in chunks) <= self.chunk + self.slots
        assert len(chunks) <= self.slots
        logits = np.stack([self.prefill(chunk.slot, chunk.start, chunk.tokens) for chunk in chunks])
        logits[[self.poison in chunk.tokens for chunk in chunks]] = np.nan
        return logits


class FakeFollowingRunner(FakeMixingRunner):
    """Chooses the likeliest tokens behind penalties, and knows them when the next step asks for them."""

    chooses = follows = True

    def __init__(self, slots: int, context: int, chunk: int, blocks: int, block: int) -> None:
        super().__init__(slots, context, chunk, blocks, block)
        self._chosen: dict[int, int] = {}
        self._seen = np.full((slots, VOCAB), 2**20)
        """Counts by slot; those that nobody has counted anew are not used."""

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None:
        self._seen[slot] = 0
        self._seen[slot, list(ids)] = counts

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Array:
        known = [
            TokenChunk(chunk.slot, chunk.start, (self._chosen[chunk.slot],)) if chunk.tokens == (UNREAD,) else chunk
            for chunk in chunks
        ]
        logits = super().mixed(known)
        if not choices:
            return logits
        slots = [chunk.slot for chunk in chunks]
        moved = np.stack([self._penalized(*row) for row in zip(logits, slots, choices, strict=True)])
        ids = np.where(np.isfinite(logits).all(1), moved.argmax(1), UNREAD).astype(np.int32)
        for slot, id, choice in zip(slots, ids, choices, strict=True):
            self._seen[slot, id] += TOKEN_MADE * choice.penalizes
        self._chosen = {chunk.slot: max(int(id), 0) for chunk, id in zip(chunks, ids, strict=True)}
        return cast(Array, ids)

    def _penalized(self, logits: Array, slot: int, choice: TokenChoice) -> Array:
        seen = self._seen[slot]
        moved = np.where(seen > 0, np.where(logits > 0, logits / choice.repetition, logits * choice.repetition), logits)
        return cast(Array, moved - choice.frequency * (seen // TOKEN_MADE) - choice.presence * (seen >= TOKEN_MADE))


class Steps:
    """Executes steps in the order of the calls, one per turn of the loop; with `gated`, one for each `release`."""

    def __init__(self, runner: FakeRunner, gated: bool = False) -> None:
        self.runner, self.gated = runner, gated
        self._queue: deque[tuple[Step, asyncio.Future[Array | None]]] = deque()

    def run(self, step: Step) -> Awaitable[Array | None]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Array | None] = loop.create_future()
        self._queue.append((step, answer))
        if not self.gated:
            loop.call_soon(self._one)
        return answer

    @property
    def waiting(self) -> list[Step]:
        return [step for step, _ in self._queue]

    async def release(self) -> Step:
        """Waits for a step, executes it, and shows its result."""
        while not self._queue:
            await asyncio.sleep(0)
        step = self._queue[0][0]
        self._one()
        for _ in range(10):
            await asyncio.sleep(0)
        return step

    def open(self) -> None:
        """From now on, steps need no `release`."""
        self.gated = False
        for _ in self._queue:
            asyncio.get_running_loop().call_soon(self._one)

    def _one(self) -> None:
        step, answer = self._queue.popleft()
        try:
            logits = self.runner.execute(step)
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
            return
        if not answer.done():
            answer.set_result(logits)


def limits(
    slots: int = 4,
    context: int = 64,
    prefill: int = 16,
    total: int | None = None,
    block: int = 4,
    most: int = 64,
    buckets: tuple[int, ...] = (4,),
) -> EngineLimits:
    return EngineLimits(
        context=context,
        max_input=context - 1,
        batch_prefill=prefill,
        batch_total=slots * context if total is None else total,
        block=block,
        max_concurrent=most,
        slot_buckets=(slots,),
        context_buckets=(context,),
        prefill_buckets=(*(size for size in buckets if size < prefill), prefill),
    )


class EngineHarness:
    """An engine on a fake runner. One that mixes is also paged, one that follows mixes. `states`: of texts."""

    def __init__(
        self,
        shape: EngineLimits | None = None,
        *,
        lanes: int = 1,
        gated: bool = False,
        paged: bool = False,
        mixes: bool = False,
        follows: bool = False,
        states: bool = False,
        overlaps: bool = True,
        groups: bool = False,
        constraints: Constraints | None = None,
        native: int | None = None,
        speculative: SpeculativeOptions | None = None,
        draft_states: int | None = None,
        draft_model: DraftModel | None = None,
    ) -> None:
        shape = shape or limits()
        sizes = shape.slots, shape.context, shape.prefill_buckets[-1]
        blocks = blocks_for(shape.batch_total, shape.block) + 1
        mixes = mixes or follows
        paged = paged or mixes
        stateful = StatePool(shape.slots, shape.batch_total, shape.block) if states else None
        pool = PagedPool(shape.slots, blocks, shape.block) if paged else stateful
        slotted = FakeGroupingRunner if groups else FakeRunner
        plain = FakeStateRunner if states else slotted if native is None else FakeStretchingRunner
        mixing = FakeFollowingRunner if follows else FakeMixingRunner
        of_blocks = mixing if mixes else FakePagedRunner
        self.runner = of_blocks(*sizes, blocks, shape.block) if paged else plain(*sizes)
        self.steps = Steps(self.runner, gated)
        self.failures: list[str] = []
        self.engine = Engine(
            VOCAB,
            make_tokenizer(),
            shape,
            self.steps.run,
            constraints=constraints,
            lanes=lanes,
            pool=pool,
            native=native,
            mixes=mixes,
            groups=groups,
            chooses=follows,
            follows=follows and lanes == 1,
            overlaps=overlaps,
            speculative=speculative,
            draft_states=draft_states,
            draft_model=draft_model,
            on_failure=self.failures.append,
        )

    async def __aenter__(self) -> EngineHarness:
        self.engine.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.steps.gated:
            self.steps.open()
        await self.engine.close()

    @property
    def decodes(self) -> list[Decode]:
        return [step for step in self.runner.log if isinstance(step, Decode)]

    @property
    def prefills(self) -> list[Prefill]:
        return [step for step in self.runner.log if isinstance(step, Prefill)]

    def idle(self) -> bool:
        """Nothing is left behind."""
        stats = self.engine.stats()
        return not (stats.running or stats.waiting or stats.requests or stats.blocks_used)


def request(
    prompt: str | Sequence[int], max_tokens: int | None = 8, *, stream: bool = True, priority: int = 0, **params: object
) -> GenerateRequest:
    """Greedy, to its full length."""
    given: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True, **params}
    prompt = prompt if isinstance(prompt, str) else tuple(prompt)
    return GenerateRequest(
        prompt=prompt,
        params=SamplingParams(max_tokens=max_tokens, **given),
        stream=stream,
        priority=priority,
    )


def alone(
    prompt: Sequence[int], count: int, eos: bool = False, state: int = 0, params: SamplingParams | None = None
) -> list[int]:
    """The greedy text of a prompt, by the model without a cache; with the penalties of `params`."""
    text = list[int]()
    for token in prompt:
        state = after(state, token)
    while len(text) < count:
        logits = logits_of(state)
        text.append(int((logits if params is None else penalized(logits, prompt, text, params)).argmax()))
        if eos and text[-1] == END:
            break
        state = after(state, text[-1])
    return text


def penalized(logits: Array, prompt: Sequence[int], text: Sequence[int], params: SamplingParams) -> Array:
    """As the parameters are documented, token by token."""
    moved = logits.copy()
    for token in {*prompt, *text}:
        by = params.repetition_penalty
        moved[token] = logits[token] / by if logits[token] > 0 else logits[token] * by
    for token in set(text):
        moved[token] -= params.frequency_penalty * text.count(token) + params.presence_penalty
    return moved


async def read(handle: RequestHandle) -> list[GenerateDelta]:
    return [delta async for delta in handle]


def ids(deltas: Sequence[GenerateDelta], index: int = 0) -> list[int]:
    return [token.id for delta in deltas if delta.index == index for token in delta.tokens]
