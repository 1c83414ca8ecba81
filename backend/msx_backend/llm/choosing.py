"""Decides which steps choose their tokens on the device."""

from __future__ import annotations

import msgspec

from msx_backend.llm.sampling.choice import TokenChoice
from msx_backend.llm.step import Mixed
from msx_backend.llm.step_plan import StepPlan


def choose_on_device(plan: StepPlan) -> None:
    """Lets the device choose the tokens of a step, if no text that gets one asks for more than it can do; drafted
    tokens are compared on the host."""
    samplers = [plan.sequences[place].sampler for place in plan.wanting]
    if not isinstance(plan.step, Mixed) or plan.drafts or not all(sampler.is_plain for sampler in samplers):
        return
    choices = [TokenChoice()] * len(plan.sequences)
    for place, sampler in zip(plan.wanting, samplers, strict=True):
        choices[place] = sampler.order()
    plan.step = msgspec.structs.replace(plan.step, choices=tuple(choices))
