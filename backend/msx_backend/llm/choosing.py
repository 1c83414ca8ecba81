"""Decides which steps choose their tokens on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from msx_backend.llm.sampling.choice import TokenChoice
from msx_backend.llm.scheduler import StepPlan
from msx_backend.llm.step import Mixed


def choosing(plan: StepPlan, wanting: Sequence[int]) -> StepPlan:
    """Lets the device choose the tokens of a step, if no text of those that `wanting` places hold asks for more than
    it can do; drafted tokens are compared on the host."""
    samplers = [plan.sequences[place].sampler for place in wanting]
    if not isinstance(plan.step, Mixed) or plan.drafts or not all(sampler.is_plain for sampler in samplers):
        return plan
    choices = [TokenChoice()] * len(plan.sequences)
    for place, sampler in zip(wanting, samplers, strict=True):
        choices[place] = sampler.order()
    return replace(plan, step=msgspec.structs.replace(plan.step, choices=tuple(choices)))
