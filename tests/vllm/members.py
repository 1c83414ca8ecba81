"""Members that are read of vLLM's objects, compared with the real classes: names, and where None may stand."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

from msx_vllm import outputs


def missing_members(stub: types.ModuleType) -> Iterator[str]:
    """`stub`: that of `vllm.v1.engine.async_llm`, whose engine has what is read of a real one."""
    from vllm.config import (
        CacheConfig,
        LoRAConfig,
        ModelConfig,
        SchedulerConfig,
        StructuredOutputsConfig,
        VllmConfig,
    )
    from vllm.logprobs import Logprob
    from vllm.outputs import CompletionOutput, RequestOutput
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.metrics.stats import RequestStateStats

    for ours, theirs in {
        outputs.Score: Logprob,
        outputs.TextOutput: CompletionOutput,
        outputs.EngineOutput: RequestOutput,
        outputs.Times: RequestStateStats,
    }.items():
        yield from _unlike(ours, theirs)
    vars(stub)["HfTokenizer"] = MagicMock  # the real one, which its module has imported here, is a union of types
    engine = stub.AsyncLLM(MagicMock())
    for path, kind in {
        "model_config": ModelConfig,
        "vllm_config": VllmConfig,
        "vllm_config.cache_config": CacheConfig,
        "vllm_config.scheduler_config": SchedulerConfig,
        "vllm_config.lora_config": LoRAConfig,
        "vllm_config.structured_outputs_config": StructuredOutputsConfig,
    }.items():
        made: Any = engine
        for name in path.split("."):
            made = getattr(made, name)
        yield from (f"{path}.{name}" for name in vars(made) if name not in _names(kind))
    yield from (f"AsyncLLM.{name}" for name in ("errored",) if not isinstance(getattr(AsyncLLM, name, None), property))


def _unlike(ours: type, theirs: type) -> Iterator[str]:
    """Properties of the protocol that the real class does not have, or has with None where ours is never None."""
    hints = typing.get_type_hints(theirs if dataclasses.is_dataclass(theirs) else theirs.__init__)  # type: ignore[misc]
    for name, member in vars(ours).items():
        if isinstance(member, property) and member.fget is not None:
            read = typing.get_type_hints(member.fget)["return"]
            if name not in hints:
                yield f"{theirs.__name__}.{name}"
            elif _may_be_none(hints[name]) and not _may_be_none(read):
                yield f"{theirs.__name__}.{name} may be None"


def _may_be_none(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _names(kind: type) -> set[str]:
    return {*dir(kind), *(one for base in inspect.getmro(kind) for one in getattr(base, "__annotations__", ()))}
