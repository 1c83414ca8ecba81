"""Decides the next step. It is pure: no input or output, no clock; the same events lead to the same steps."""

from itertools import chain, islice
from operator import attrgetter

from msx_llm.adapters.places import AdapterPlaces
from msx_llm.blocks import BlockPool
from msx_llm.limits import EngineLimits
from msx_llm.pace import MOST_STEPS, PrefillPace
from msx_llm.patience import pass_by
from msx_llm.prompt_groups import PromptGroups
from msx_llm.sequence import TokenSequence
from msx_llm.speculator import Drafts, Speculator
from msx_llm.step import UNREAD, KeepState, Mixed, Prefill, Prefills, Step, Stretch
from msx_llm.step_plan import StepPlan, Written
from msx_llm.step_rows import chunk, decode_step, preparation, rows_of
from msx_llm.waiting import WaitingTexts, last_in_turn

_order = attrgetter("order")
_turn = attrgetter("turn")
USUAL = 0
"""The priority of requests that name none; a higher number is less urgent."""
_line = attrgetter("priority", "entered")
"""Prompts are computed by priority, and in the order of their admission."""


class Scheduler:
    """Continuous batching of sequences that come and go between any two steps.

    - Waiting ones are admitted as soon as there are a slot and blocks for their tokens; a block for each running one is
      left over. Priorities come first, and none starves: see `patience`. Among equal ones keys take turns, and requests
      of one key: see `waiting`. Nobody overtakes whose turn it is. As prompts are computed one after the other, one
      that would only wait for its turn is not admitted yet: by then it may find its beginning in the cache, above all
      the other texts of the same request.
    - Prompts are computed in chunks of at most `batch_prefill` tokens, cut so that little is padded. While others
      decode, a chunk, and all that is computed between two of their steps, is what `pace` allows, padding included: the
      time of a step, or of several for prompts that fit a chunk, and where more prompts wait than texts decode. No
      prompt holds them up for longer.
      Texts below the usual priority do not slow down prompts above it.
    - A text may grow beyond the blocks that are left, because its length is unknown, and a reservation of its
      `max_tokens` would leave most of the cache unused. Then the last text of the request with most texts here is
      preempted: it gives its blocks back, and is the next one of its priority. When it comes back, its tokens are
      computed again as a prompt, as far as the cache lost them; it goes on with the same sampler, so that clients do
      not notice. The first in order always gets on.
    - Where the runner `groups`, short prompts are computed in one step if that costs less than one after the other.
    - The keys of a prompt of more than `native` tokens fit no other text: it shares none, neither way.
    - With several lanes, so many steps may be in flight, of disjoint sequences: those that decode share them equally.
    - Where the runner `mixes`, one step has a token of every text that decodes, and beside them parts of as many
      prompts as fit a chunk. A prompt whose logits are all wanted has steps of its own.
    - A text with an adapter waits, and all behind it, until the device has a place for the adapter.
    - A step that chooses its tokens on the device may be foreseen: then the next one is planned before they are known.
      A text that is preempted meanwhile is not admitted before.
    - Drafted tokens take places of a step that no text takes: the same slot again, at the next positions. They never
      make a text leave.
    """

    def __init__(
        self,
        pool: BlockPool,
        limits: EngineLimits,
        lanes: int = 1,
        native: int | None = None,
        mixes: bool = False,
        groups: bool = False,
        speculator: Speculator | None = None,
        places: AdapterPlaces | None = None,
    ) -> None:
        self.speculator, self._places = speculator, places
        self._pool, self._lanes, self._native, self._mixes = pool, lanes, native, mixes
        self._slots, self._chunk = limits.slots, min(limits.batch_prefill, limits.prefill_buckets[-1])
        self.pace = PrefillPace(limits.prefill_buckets, self._chunk)
        sizes = tuple(size for size in limits.slot_buckets if size > 1) if groups and lanes == 1 else ()
        self._groups = PromptGroups(sizes, limits.context_buckets, self.pace, self._chunk, limits.block)
        self._spent = self._turns = self._entered = self.preempted = 0
        self.waiting = WaitingTexts()
        self.running: list[TokenSequence] = []

    def add(self, sequence: TokenSequence) -> None:
        self.waiting.add(sequence)

    def end(self, sequence: TokenSequence) -> None:
        """Ends a sequence at any time, repeatedly if need be. Its slot and blocks are free at once."""
        if sequence.finished:
            return
        sequence.finished = True
        if sequence.slot is None:
            self.waiting.remove(sequence)
        else:
            self._leave(sequence)
            self._pool.free(sequence.slot)

    def next(self) -> StepPlan | None:
        """The next step; None if there is nothing to do until a sequence is added or a step is done."""
        before = self.preempted
        plan = self._next()
        while plan is None and self.preempted > before:  # what was held up by those who had to leave can go on
            before = self.preempted
            plan = self._next()
        return plan

    def _next(self) -> StepPlan | None:
        self._admit()
        idle = [sequence for sequence in self.running if not sequence.in_flight]
        # A mixed step is prepared by itself, but for adapters that are read.
        if plan := self._prepare([one for one in idle if one.scored or not self._mixes or self._reads(one)]):
            return plan
        ready = [sequence for sequence in idle if sequence.left == 1]
        filling = sorted((sequence for sequence in idle if sequence.left > 1), key=_line)
        if filling and (filling[0].scored or not self._mixes) and (plan := self._prefill(filling)):
            return plan
        return self._mix(ready, filling) if self._mixes else self._decode(ready)

    def done(self, plan: StepPlan) -> None:
        """The step was executed. Unfinished sequences may get another token, and be scheduled again."""
        if self._places is not None:
            self._places.done(plan.step)
        for sequence, more in zip(plan.sequences, plan.appended(), strict=True):
            sequence.in_flight = False
            if sequence.slot is not None and not sequence.finished:
                sequence.computed += more
                self._share_keys(sequence, sequence.computed)
                if sequence.parts and sequence.computed == sequence.parts:
                    sequence.before.append(KeepState(sequence.slot))
                    sequence.parts = 0
                    self._pool.kept(sequence.slot, 0)
                if sequence.drafts is not None:
                    sequence.drafts.read(sequence.tokens, sequence.computed)

    def foresee(self, plan: StepPlan) -> list[Written]:
        """The step was started, and chooses its tokens on the device: until they are read, the sequences are scheduled
        as if they had them. -> What it writes, for `read`."""
        written = []
        for sequence, more in zip(plan.sequences, plan.appended(), strict=True):
            sequence.in_flight = False
            if sequence.slot is not None and not sequence.finished:
                sequence.computed += more
                written.append(Written(sequence, sequence.slot, sequence.computed))
        for sequence in (plan.sequences[place] for place in plan.wanting):
            if not sequence.finished:
                sequence.tokens.append(UNREAD)
                sequence.in_flight = len(sequence.tokens) >= sequence.limit
        return written

    def read(self, written: list[Written]) -> None:
        """The step that was foreseen is done, so that others may use its keys, too."""
        for sequence, slot, length in written:
            if sequence.slot == slot and sequence.computed >= length and not sequence.finished:
                self._share_keys(sequence, length)

    def _share_keys(self, sequence: TokenSequence, length: int) -> None:
        if sequence.shares and sequence.slot is not None:
            self._pool.wrote(sequence.slot, length)

    def failed(self, plan: StepPlan) -> list[Step]:
        """The step raised, and its sequences are finished. -> Steps that test whether the runner still works."""
        probe: list[Step] = []
        for sequence in plan.sequences:
            sequence.in_flight = False
            if sequence.slot is not None and not sequence.finished:
                self._leave(sequence)
                sequence.finished = True
                probe = self._pool.scrap(sequence.slot)
        return probe

    def _admit(self) -> None:
        while len(self.running) < self._slots and (sequence := self.waiting.first) is not None:
            if not self._due(sequence) or not self._place(sequence):
                return
            pass_by(self.waiting.take(), self.waiting, self.running)
            self._entered += 1
            sequence.entered = self._entered
            self.running.append(sequence)

    def _due(self, sequence: TokenSequence) -> bool:
        if sequence.tokens[-1] == UNREAD:  # it was preempted, and its keys cannot be looked up yet
            return False
        filling = [other for other in self.running if other.left > 1]
        if any(other.request == sequence.request for other in filling):
            return False
        if self._mixes:
            return sum(other.left for other in filling) < self._chunk
        before = [other for other in filling if other.priority <= sequence.priority]
        return len(before) < self._lanes or self._groups.takes(before, sequence)

    def _place(self, sequence: TokenSequence) -> bool:
        like = next((other.slot for other in self.running if other.request == sequence.request), None)
        length = len(sequence.tokens)
        sequence.shares = self._native is None or length <= self._native
        reuse = sequence.shares and not sequence.scored
        if self._places is not None and not self._places.has_room(sequence.adapter):
            return False
        root, spare = b"" if sequence.adapter is None else sequence.adapter.root, len(self.running)
        placement = self._pool.take(sequence.tokens, reuse=reuse, like=like, spare=spare, root=root)
        if placement is None:
            return False
        sequence.place(*placement)
        if self._native is not None:
            sequence.before.insert(0, Stretch(placement.slot, 0 if sequence.shares else length))
        if self._places is not None:
            sequence.before.insert(0, self._places.take(sequence.adapter, placement.slot))
        return True

    def _leave(self, sequence: TokenSequence) -> None:
        self.running.remove(sequence)
        if self._places is not None:
            self._places.leave(sequence.adapter)

    def _reads(self, sequence: TokenSequence) -> bool:
        return self._places is not None and bool(sequence.before) and self._places.reads(sequence.before[0])

    def _prepare(self, sequences: list[TokenSequence]) -> StepPlan | None:
        for sequence in sequences:
            if sequence.before:
                step = sequence.before.pop(0)
                plan = self._launch(step, [sequence])
                if isinstance(step, KeepState):
                    self._pool.kept(step.slot, sequence.computed)
                return plan
        return None

    def _prefill(self, filling: list[TokenSequence]) -> StepPlan | None:
        """A prefill step of the first of these prompts, and of those that are computed with it; None if decoding comes
        first."""
        sequence = filling[0]
        left, room = min(sequence.left, self._chunk, sequence.until_parts), self._chunk
        decoding = [other for other in self.running if other.left <= 1 and _paces(other, sequence)]
        count = self.pace.piece(left)
        if decoding:
            room = self.pace.room(self._steps(sequence, decoding))
            count = self.pace.within(left, room)
        group = self._groups.chosen(filling, room - self._spent) if count == sequence.left else [sequence]
        if decoding:
            cost = self._groups.cost(len(group), count)
            if self._spent and self._spent + cost > room:
                return None
            self._spent += cost
        parts = tuple(chunk(one, min(one.left, count)) for one in group)
        if len(parts) > 1:
            return self._launch(Prefills(parts), group)
        return self._launch(Prefill(parts[0].slot, parts[0].start, parts[0].tokens, sequence.scored), [sequence])

    def _steps(self, sequence: TokenSequence, decoding: list[TokenSequence]) -> float:
        """Decoding steps that prompts may cost as much as, `sequence` first, between two of them. Prompts of a worse
        priority do not count, nor more than have a slot."""
        worst = min(other.priority for other in decoding)
        if sequence.priority <= worst and len(sequence.tokens) - (sequence.cached or 0) <= self._chunk:
            return MOST_STEPS
        filling = (other for other in self.running if other.left > 1)
        waiting = islice(chain(filling, self.waiting), self._slots - len(decoding))
        return max(sum(other.priority <= worst for other in waiting) / len(decoding), 1.0)

    def _decode(self, ready: list[TokenSequence]) -> StepPlan | None:
        self._spent = 0
        batch = self._grown(ready)
        if not batch:
            return None
        drafts = self._drafts(batch, self._slots - len(batch))
        if plan := self._prepare(batch):
            return plan
        if self.speculator is not None:
            self.speculator.began(batch, drafts)
        return self._launch(decode_step(batch, drafts), batch, drafts)

    def _mix(self, ready: list[TokenSequence], filling: list[TokenSequence]) -> StepPlan | None:
        self._spent = 0
        batch = self._grown(ready)
        drafts = self._drafts(batch, self._slots - len(self.running))
        chunks = [row for rows in rows_of(batch, drafts) for row in rows]
        filling = [one for one in filling if _paces(one, filling[0])]
        is_paced = any(_paces(one, filling[0]) for one in batch) if filling else False
        room = min(self.pace.chunk, self._chunk) if is_paced else self._chunk
        for sequence in filling:
            if room and sequence.slot is not None and not sequence.scored:
                chunks.append(chunk(sequence, min(sequence.left, room)))
                batch.append(sequence)
                room -= len(chunks[-1].tokens)
        drafts += [[] for _ in batch[len(drafts) :]] if drafts else []
        return self._launch(Mixed(tuple(chunks), before=preparation(batch)), batch, drafts) if batch else None

    def _drafts(self, batch: list[TokenSequence], room: int) -> Drafts:
        """Propose draft tokens; clear a draft for which the cache has no room."""
        drafts = [] if self.speculator is None else self.speculator.drafts(batch, room)
        for sequence, draft in zip(batch, drafts, strict=False):
            assert sequence.slot is not None
            steps = self._pool.grow(sequence.slot, len(sequence.tokens) + len(draft))
            if steps is None:
                draft.clear()
            else:
                sequence.before += steps
        return drafts

    def _grown(self, ready: list[TokenSequence]) -> list[TokenSequence]:
        """One lane's share of those that decode, with room for another token. Later ones may have to leave for it."""
        batch = [sequence for sequence in self._share(ready) if self._grow(sequence)]
        return [sequence for sequence in batch if sequence.slot is not None]

    def _share(self, ready: list[TokenSequence]) -> list[TokenSequence]:
        """One lane's share of the decoding sequences: those whose last step is longest ago."""
        if self._lanes > 1:
            share = -(-sum(sequence.left <= 1 for sequence in self.running) // self._lanes)
            ready = sorted(ready, key=_turn)[:share]
        return sorted(ready, key=_order)

    def _grow(self, sequence: TokenSequence) -> bool:
        """Returns False if the sequence itself was preempted."""
        while sequence.slot is not None:
            steps = self._pool.grow(sequence.slot, len(sequence.tokens))
            if steps is not None:
                sequence.before += steps
                return True
            self._preempt(last_in_turn(self.running))
        return False

    def _preempt(self, sequence: TokenSequence) -> None:
        assert sequence.slot is not None
        self._pool.free(sequence.slot)
        self._leave(sequence)
        sequence.displace()
        self.waiting.put_back(sequence)
        self.preempted += 1

    def _launch(self, step: Step, sequences: list[TokenSequence], drafts: Drafts | None = None) -> StepPlan:
        self._turns += 1
        for sequence in sequences:
            sequence.in_flight, sequence.turn = True, self._turns
            if sequence.slot is not None:
                self._pool.begin(sequence.slot)
        return StepPlan(step, sequences, drafts or [])


def _paces(text: TokenSequence, prompt: TokenSequence) -> bool:
    """Whether a text counts beside a prompt: one below the usual priority only beside another such."""
    return text.priority <= max(prompt.priority, USUAL)
