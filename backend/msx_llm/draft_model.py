"""Drafts by a small model of the same tokens."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from msx_llm.blocks import common
from msx_llm.draft_blocks import DraftBlocks
from msx_llm.sampling.choice import TokenChoice
from msx_llm.sequence import TokenSequence
from msx_llm.speculator import Speculator
from msx_llm.step import Sleep, TokenChunk, Wake
from msx_llm.step_runner import ChoosingRunner, MixingRunner, PagedRunner, StepRunner, prepare

log = logging.getLogger("msx.llm")


@dataclass(slots=True)
class Drafting:
    """A text of which `fed` tokens are in the small model's cache; behind its `length` tokens are drafted ones."""

    slot: int
    said: list[int]
    count: int
    fed: int = 0
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(self.said)

    @property
    def draft(self) -> list[int]:
        return self.said[self.length :]


class DraftModel:
    """Its slots are the engine's: each holds the same text, as far as it was needed. Over several ranks, the first one
    alone has it. It runs on the engine's thread, between two steps of the large model."""

    def __init__(self, runner: StepRunner, chunk: int) -> None:
        """`chunk`: the most tokens of a prompt that are read between two steps."""
        self._runner, self._chunk = runner, chunk
        self._held: dict[int, list[int]] = {}
        self._blocks = DraftBlocks(runner) if isinstance(runner, PagedRunner) else None
        self.has_read = False
        """The last drafts took longer, because prompts were read before."""

    def draft(self, texts: Sequence[Drafting]) -> list[list[int]]:
        """The likeliest tokens behind each text; none behind one whose prompt is still being read, or has no room."""
        self.has_read = False
        for text in texts:
            held = self._held.pop(text.slot, [])
            text.fed = common(held, text.said, min(len(held), text.length - 1))
        writing = [text for text in texts if self._has_room(text) and self._read(text)]
        while rows := [text for text in writing if len(text.said) - text.length < text.count]:
            self._step(rows)
        self._held.update((text.slot, text.said[: text.fed]) for text in texts)
        return [text.draft for text in texts]

    def sleep(self, weights: bool) -> None:
        """See `Sleep`."""
        self._held.clear()
        prepare(self._runner, Sleep(weights))

    def wake(self) -> None:
        """See `Wake`."""
        self._held.clear()
        prepare(self._runner, Wake())

    def _has_room(self, text: Drafting) -> bool:
        """Make room for the text: drop the oldest slots of texts that are not in this call."""
        if self._blocks is None:
            return True
        while not self._blocks.reach(text.slot, text.length + text.count):
            oldest = next(iter(self._held), None)  # those of this call have been taken out
            if oldest is None:
                return False
            del self._held[oldest]
            self._blocks.leave(oldest)
        return True

    def _read(self, text: Drafting) -> bool:
        """Reads a piece of what is missing. -> Whether hardly anything is missing any more."""
        missing = text.length - 1 - text.fed
        if missing > text.count:
            piece = text.said[text.fed : text.fed + min(missing, self._chunk)]
            self._runner.prefill(text.slot, text.fed, piece)
            text.fed += len(piece)
            self.has_read = True
        return text.length - 1 - text.fed <= text.count

    def _step(self, rows: list[Drafting]) -> None:
        for text, token in zip(rows, self._likeliest(rows), strict=True):
            text.fed += 1
            if text.fed == len(text.said):
                text.said.append(token)

    def _likeliest(self, rows: list[Drafting]) -> list[int]:
        """The likeliest token behind the next one of each text that is not in the cache; on the device, if it
        chooses."""
        slots, tokens, places = zip(*((text.slot, text.said[text.fed], text.fed) for text in rows), strict=True)
        if isinstance(self._runner, MixingRunner) and isinstance(self._runner, ChoosingRunner) and self._runner.chooses:
            chunks = [TokenChunk(*it) for it in zip(slots, places, ((token,) for token in tokens), strict=True)]
            ids = self._runner.mixed(chunks, [TokenChoice()] * len(rows))
        else:
            ids = self._runner.decode(slots, tokens, places).argmax(-1)
        return [max(int(it), 0) for it in ids]  # -1: no logit was finite


class Drafter:
    """Has drafts written for texts that are about to be continued, where the speculator expects that they pay."""

    def __init__(self, model: DraftModel, speculator: Speculator, slots: int) -> None:
        self._model, self._speculator, self._slots, self._broken = model, speculator, slots, False

    def prepare(self, running: Sequence[TokenSequence]) -> None:
        """Returns when the drafts are there."""
        batch = [it for it in running if it.left == 1 and not it.in_flight and it.slot is not None]
        if self._broken or not batch or any(it.drafts is not None and it.drafts.offered(it.tokens) for it in batch):
            return
        counts = self._speculator.wanted(batch, self._slots - len(running))
        texts = [
            (sequence, Drafting(sequence.slot, list(sequence.tokens), count))
            for sequence, count in zip(batch, counts, strict=False)
            if count and sequence.slot is not None
        ]
        if texts:
            self._write(texts)

    def _write(self, texts: list[tuple[TokenSequence, Drafting]]) -> None:
        """Whatever the small model raises, texts go on without it."""
        start = time.perf_counter()
        try:
            drafts = self._model.draft([text for _, text in texts])
        except Exception:
            log.exception("the draft model has stopped working: texts are made without drafts from now on")
            self._broken = True
            return
        if not self._model.has_read:
            self._speculator.wrote(max(text.count for _, text in texts), time.perf_counter() - start)
        for (sequence, text), draft in zip(texts, drafts, strict=True):
            if sequence.drafts is not None:
                sequence.drafts.offer(text.length, draft)
