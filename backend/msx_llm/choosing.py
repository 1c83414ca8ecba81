"""Decides which steps choose their tokens on the device."""

from collections.abc import Iterable
from weakref import WeakValueDictionary

import msgspec

from msx_llm.sampling import Sampler
from msx_llm.sampling.choice import TokenChoice
from msx_llm.sequence import TokenSequence
from msx_llm.step import Mixed, Recount
from msx_llm.step_plan import StepPlan


class DeviceChoices:
    """Knows of which texts the device has counted the tokens, for their penalties. All lanes share it, as they do the
    slots."""

    def __init__(self) -> None:
        self._counted: WeakValueDictionary[int, Sampler] = WeakValueDictionary()

    def order(self, plan: StepPlan) -> None:
        """Lets the device choose the tokens of a step, if no text that gets one asks for more than it can do; drafted
        tokens are compared on the host."""
        texts = [plan.sequences[place] for place in plan.wanting]
        if not isinstance(plan.step, Mixed) or plan.drafts or not all(text.sampler.is_plain for text in texts):
            self._forget(text.sampler for text in texts)
            return
        choices, before = [TokenChoice()] * len(plan.sequences), list(plan.step.before)
        for place, text in zip(plan.wanting, texts, strict=True):
            choice = choices[place] = text.sampler.order()
            if choice.penalizes:
                before += self._recount(text)
        plan.step = msgspec.structs.replace(plan.step, choices=tuple(choices), before=tuple(before))

    def _recount(self, text: TokenSequence) -> list[Recount]:
        """Updates that make the device's counts those of the text."""
        assert text.slot is not None
        if self._counted.get(text.slot) is text.sampler:
            return []
        self._forget([text.sampler])
        self._counted[text.slot] = text.sampler
        counts = text.sampler.counts
        return [Recount(text.slot, tuple(counts), tuple(counts.values()))]

    def _forget(self, samplers: Iterable[Sampler]) -> None:
        """The host chooses their next tokens, or the device counts them at another slot."""
        gone = set(samplers)
        for slot in [slot for slot, sampler in self._counted.items() if sampler in gone]:
            del self._counted[slot]
