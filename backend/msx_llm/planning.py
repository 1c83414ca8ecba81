"""The limits of a model's engine, planned beside its weights, and the blocks of its cache."""

from __future__ import annotations

from msx_core.config import ModelConfig
from msx_llm.blocks import BlockPool
from msx_llm.draft_loading import draft_weights
from msx_llm.limits import check_context, limits_of
from msx_llm.measured_plan import CacheBytes, MeasuredPlan, Plan
from msx_llm.memory import stated_budget
from msx_llm.models.config import DecoderConfig
from msx_llm.paged import PagedPool
from msx_llm.state_pool import StatePool
from msx_llm.step_runner import PagedRunner, StepRunner
from msx_llm.steps import StatefulRunner
from msx_sdk import Context
from msx_sdk.mindspore import Parallel


def pool_of(runner: StepRunner, slots: int) -> BlockPool | None:
    """A paged pool if the device's cache is paged, and one that knows of states where texts have some; otherwise the
    engine uses contiguous slots."""
    if isinstance(runner, StatefulRunner) and runner.keeps_states:
        return StatePool(slots, runner.limits.batch_total, runner.limits.block)
    return PagedPool(slots, runner.blocks, runner.block) if isinstance(runner, PagedRunner) else None


def planned(
    context: Context,
    yaml: ModelConfig,
    config: DecoderConfig,
    parallel: Parallel,
    drafting: DecoderConfig | None = None,
) -> Plan:
    """The limits that fit beside the weights, computed before they are read unless the device must be asked.
    `drafting`: a second model on the first rank, whose cache holds the same tokens.

    Raises HandlerLoadError.
    """
    token = config.token_bytes(parallel.stages, parallel.tp_size, parallel.target)
    token += 0 if drafting is None else drafting.token_bytes(1, 1, parallel.target)
    text = config.text_bytes(parallel.stages, parallel.tp_size, parallel.target)
    drafts = draft_weights(drafting, parallel)
    check_context(yaml, config.context)
    if (budget := stated_budget(yaml, parallel.target)) is not None:
        limits = limits_of(yaml, config.context, token, budget, text)
        return lambda used: limits
    return MeasuredPlan(context, yaml, parallel, config.context, CacheBytes(token, text), drafts)
