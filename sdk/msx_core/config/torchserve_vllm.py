"""Settings of a model that follow from TorchServe's `handler.vllm_engine_config`."""

import math
from collections.abc import Mapping
from typing import Any

from msx_core.config.vllm_parallel import SIZES
from msx_core.names import MOST_ALIASES, aliases_problem
from msx_core.values import show

KEY = "handler.vllm_engine_config"
NAMES = f"{KEY}.served_model_name"


def implied(mapping: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Find fields of ModelConfig, before which the file's own keys go; none for other models. A warning for each name
    that cannot be an alias."""
    section: Any = mapping
    for key in KEY.split("."):
        section = section.get(key) if isinstance(section, Mapping) else None
    if not isinstance(section, Mapping):
        return {}
    return {"aliases": _aliases(section.get("served_model_name"), warnings), **_devices(section)}


def _devices(section: Mapping[str, Any]) -> dict[str, Any]:
    """As many as vLLM divides the model over: TorchServe's workers see all devices, and those of MSX their own."""
    sizes = [size for name in SIZES if type(size := section.get(name)) is int and size > 0]
    level = math.prod(sizes)
    return {"parallel_type": "custom", "parallel_level": level} if level > 1 else {}


def _aliases(given: Any, warnings: list[str]) -> tuple[str, ...]:
    """A name, or a list of names."""
    names = [given] if isinstance(given, str) else given
    if not names:
        return ()
    if not isinstance(names, list):
        warnings.append(f"{NAMES}: {show(names)} is neither a name nor a list of names, and is ignored")
        return ()
    return tuple(_valid(names, warnings))


def _valid(given: list[Any], warnings: list[str]) -> list[str]:
    names: list[str] = []
    for name in given:
        if not isinstance(name, str) or len(names) == MOST_ALIASES:
            warnings.append(
                f"{NAMES}: {show(name)} is no further name, of which {MOST_ALIASES} are the most: it is ignored"
            )
        elif problem := aliases_problem([name]):
            warnings.append(f"{NAMES}: {problem}: it is ignored")
        elif name not in names:
            names.append(name)
    return names
