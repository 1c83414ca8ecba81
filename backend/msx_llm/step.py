"""Steps as data: rank 0 decides, and every rank executes the same steps in the same order."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from msx_llm.adapters.adapter import Adapter
from msx_llm.sampling.choice import TokenChoice

Array = NDArray[np.float32]
UNREAD = -1
"""Stands, among the tokens of a step, for the one that the last step with `choices` has chosen for the slot."""


class Prefill(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Appends `tokens` at positions `start`, … of a slot; the positions before `start` are in the slot already."""

    slot: int
    start: int
    tokens: tuple[int, ...]
    all_logits: bool = False


class Decode(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Appends one token to each of several slots."""

    slots: tuple[int, ...]
    tokens: tuple[int, ...]
    positions: tuple[int, ...]


class CopyPositions(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Copies positions [0, `length`) of one slot to another, and the state behind them where texts have states: within
    a slot the state alone."""

    source: int
    target: int
    length: int


class AssignBlocks(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Puts the positions of a slot in these blocks from now on. Only with a paged cache."""

    slot: int
    blocks: tuple[int, ...]


class Stretch(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Says that a slot holds a text, from now on, whose prompt has `length` tokens. Only if angles depend on that."""

    slot: int
    length: int


class Adapt(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Says that a slot holds a text, from now on, of the adapter in `place`, or with 0 of none. The adapter is read
    where another one, or none, is in the place."""

    slot: int
    place: int
    adapter: Adapter | None = None


class Recount(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Says that a slot holds a text, from now on, that has these tokens, for the penalties of its choices: `counts` are
    `TOKEN_MADE` for each time that one was made, and 1 for one that only stands in the prompt."""

    slot: int
    ids: tuple[int, ...]
    counts: tuple[int, ...]


class Sleep(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Releases the memory of keys and values, and with `weights` that of the weights, until `Wake`. No text runs."""

    weights: bool


class Wake(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Reads what `Sleep` released."""


class KeepState(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Keeps the state of a slot's text as it is now, beside those to come. Only if texts have states."""

    slot: int


Preparation = CopyPositions | AssignBlocks | Stretch | Adapt | Recount | KeepState


class TokenChunk(msgspec.Struct, frozen=True, array_like=True):
    """Appends `tokens` at positions `start`, … of a slot."""

    slot: int
    start: int
    tokens: tuple[int, ...]


class Mixed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Appends to several slots: prompts, parts of prompts and single tokens. Only if the runner is a `MixingRunner`.

    `choices`, one for each chunk: the runner, a `ChoosingRunner`, answers with ids instead of logits. `before`: steps
    that are executed first.
    """

    chunks: tuple[TokenChunk, ...]
    choices: tuple[TokenChoice, ...] = ()
    before: tuple[Preparation, ...] = ()


class Prefills(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Appends the prompts of several texts, or parts of them. Only if the runner is a `GroupingRunner`."""

    chunks: tuple[TokenChunk, ...]


Step = (
    Prefill
    | Prefills
    | Decode
    | Mixed
    | CopyPositions
    | AssignBlocks
    | Stretch
    | Adapt
    | Recount
    | KeepState
    | Sleep
    | Wake
)


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Step] = msgspec.msgpack.Decoder(Step)


def answers_with_ids(step: Step) -> bool:
    """The runner chooses the step's tokens."""
    return isinstance(step, Mixed) and bool(step.choices)


def encode(step: Step) -> bytes:
    return _encoder.encode(step)


def decode(data: bytes) -> Step:
    """Raises msgspec.DecodeError."""
    return _decoder.decode(data)
