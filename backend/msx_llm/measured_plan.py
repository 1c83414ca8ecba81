"""Limits by what a device has beside the weights and the largest step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from msx_core.config import ModelConfig
from msx_core.mindspore import graph_cache
from msx_core.mindspore.runtime import keep_graphs
from msx_llm.kernels.device import EngineDevice
from msx_llm.kernels.devices import engine_device
from msx_llm.limits import EngineLimits, limits_of
from msx_llm.memory import measured_budget
from msx_sdk import Context
from msx_sdk.mindspore.parallel import Parallel

Plan = Callable[[int], EngineLimits]
"""The limits that fit beside so many used bytes."""


class CacheBytes(NamedTuple):
    """Keys and values of a `token`, and the states of a `text`, on one rank."""

    token: int
    text: int


@dataclass(frozen=True)
class MeasuredPlan:
    """A `Plan` that asks the device, whose used bytes are therefore those of the largest step, weights included.

    `longest`: the model's context; `drafts`: bytes of the weights of a second model.
    """

    context: Context
    yaml: ModelConfig
    parallel: Parallel
    longest: int
    cache: CacheBytes
    drafts: int

    @property
    def device(self) -> EngineDevice:
        """The device that is asked."""
        return engine_device(self.parallel.target)

    def __call__(self, used: int) -> EngineLimits:
        """Raises HandlerLoadError."""
        limits = self._limits(used)
        graph_cache.settle(str(limits))  # which the device's memory may change from start to start
        return limits

    def of_trial(self, weights: int) -> EngineLimits:
        """Limits of the step that is tried, as far as the weights alone leave room. Raises HandlerLoadError."""
        self.context.report_progress("trying the largest step")
        limits = self._limits(weights)
        keep_graphs(self.context, str(limits))
        return limits

    def _limits(self, used: int) -> EngineLimits:
        budget = measured_budget(self.yaml, self.parallel, used + self.drafts)
        return limits_of(self.yaml, self.longest, self.cache.token, budget, self.cache.text)
