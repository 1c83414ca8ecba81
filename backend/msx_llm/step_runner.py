"""Runners of steps: this rank's part of a model, and what more some of them can do."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from msx_llm.adapters.adapter import Adapter
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import (
    Adapt,
    Array,
    AssignBlocks,
    CopyPositions,
    Decode,
    KeepState,
    Mixed,
    Prefill,
    Prefills,
    Recount,
    Sleep,
    Step,
    Stretch,
    TokenChunk,
    Wake,
)


class StepRunner(Protocol):
    """This rank's part of the model, and of its cache of keys and values: `slots` texts of up to `context` tokens."""

    vocab_size: int
    slots: int
    context: int

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        """-> logits float32 [vocab] of the last token, or [len(tokens), vocab] with `all_logits`."""

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        """-> logits float32 [len(slots), vocab]"""

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Compiles every graph that serving needs."""


@runtime_checkable
class LaterCompilingRunner(Protocol):
    """It can serve with a few graphs: a step whose graph is not compiled yet runs in a larger one."""

    @property
    def uncompiled(self) -> int:
        """The graphs that are left."""

    def warm_up_first(self, report: Callable[[str], None]) -> None:
        """Compiles, in place of `warm_up`, the graphs that hold every step, and a step of one text. Of one rank only:
        others would compile what is left at other times."""

    def compile_next(self) -> str:
        """Compiles one of the graphs that are left -> its name. Not while a step runs."""


@runtime_checkable
class StretchingRunner(Protocol):
    """The angles of positions depend on the length of a long text."""

    def stretch(self, slot: int, length: int) -> None: ...


@runtime_checkable
class AdaptingRunner(Protocol):
    """Texts may have adapters, which are in places from 1 on."""

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None: ...


@runtime_checkable
class CopyingRunner(Protocol):
    """Slots are memory of their own, so that a prefix must be copied."""

    def copy(self, source: int, target: int, length: int) -> None: ...


@runtime_checkable
class StateKeepingRunner(Protocol):
    """Texts may have states."""

    def keep_state(self, slot: int) -> None: ...


@runtime_checkable
class GroupingRunner(Protocol):
    """One step may append parts of several prompts."""

    def prefills(self, chunks: Sequence[TokenChunk]) -> Array:
        """-> logits float32 [chunks, vocab], of the last token of each"""


@runtime_checkable
class MixingRunner(Protocol):
    """One step may append any number of tokens to each of several slots."""

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Array:
        """-> logits float32 [chunks, vocab], of the last token of each; with `choices` ids int32 [chunks], -1 where
        logits are not finite."""


@runtime_checkable
class ChoosingRunner(Protocol):
    """One that takes `choices`, if it `chooses`; if it also `follows`, tokens of the next step may be `UNREAD`."""

    chooses: bool
    follows: bool

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None: ...


@runtime_checkable
class SleepingRunner(Protocol):
    """One that can release its memory, and have it back with its graphs as they are."""

    def sleep(self, weights: bool) -> None:
        """See `Sleep`."""

    def wake(self) -> None:
        """Raises HandlerLoadError if the weights cannot be read any more."""


@runtime_checkable
class PagedRunner(Protocol):
    """Slots are tables of `blocks` blocks of `block` tokens."""

    block: int
    blocks: int

    def assign(self, slot: int, blocks: Sequence[int]) -> None: ...


def execute(runner: StepRunner, step: Step) -> Array | None:
    """Returns the logits of a `Prefill`, `Prefills`, `Decode` or `Mixed`. Ranks other than 0 drop them."""
    if isinstance(step, Decode):
        return runner.decode(step.slots, step.tokens, step.positions)
    if isinstance(step, Prefill):
        return runner.prefill(step.slot, step.start, step.tokens, step.all_logits)
    if isinstance(step, Prefills) and isinstance(runner, GroupingRunner):
        return runner.prefills(step.chunks)
    if isinstance(step, Mixed) and isinstance(runner, MixingRunner):
        for preparation in step.before:
            prepare(runner, preparation)
        return runner.mixed(step.chunks, step.choices)
    prepare(runner, step)
    return None


def prepare(runner: StepRunner, step: Step) -> None:
    """Executes a `Preparation`, `Sleep` or `Wake`. Raises TypeError for other steps, and for those that the runner does
    not know."""
    if isinstance(step, CopyPositions) and isinstance(runner, CopyingRunner):
        runner.copy(step.source, step.target, step.length)
    elif isinstance(step, Stretch) and isinstance(runner, StretchingRunner):
        runner.stretch(step.slot, step.length)
    elif isinstance(step, Adapt) and isinstance(runner, AdaptingRunner):
        runner.adapt(step.slot, step.place, step.adapter)
    elif isinstance(step, Recount) and isinstance(runner, ChoosingRunner):
        runner.recount(step.slot, step.ids, step.counts)
    elif isinstance(step, AssignBlocks) and isinstance(runner, PagedRunner):
        runner.assign(step.slot, step.blocks)
    elif isinstance(step, KeepState) and isinstance(runner, StateKeepingRunner):
        runner.keep_state(step.slot)
    elif isinstance(step, Sleep) and isinstance(runner, SleepingRunner):
        runner.sleep(step.weights)
    elif isinstance(step, Wake) and isinstance(runner, SleepingRunner):
        runner.wake()
    else:
        raise TypeError(f"{type(runner).__name__} cannot execute a step of the kind {type(step).__name__}")
