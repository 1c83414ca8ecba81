"""Names by which a model for TorchServe's vllm_handler is asked for, besides its own."""

from collections.abc import Mapping
from typing import Any

from msx_core.names import MOST_ALIASES, aliases_problem
from msx_core.values import show

KEY = "handler.vllm_engine_config.served_model_name"


def served_names(mapping: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...]:
    """The names in `served_model_name`, a text or a list, as aliases; a warning for each that cannot be one."""
    section: Any = mapping
    for key in KEY.split("."):
        section = section.get(key) if isinstance(section, Mapping) else None
    given = [section] if isinstance(section, str) else section
    if not given:
        return ()
    if not isinstance(given, list):
        warnings.append(f"{KEY}: {show(section)} is neither a name nor a list of names, and is ignored")
        return ()
    return tuple(_valid(given, warnings))


def _valid(given: list[Any], warnings: list[str]) -> list[str]:
    names: list[str] = []
    for name in given:
        if not isinstance(name, str) or len(names) == MOST_ALIASES:
            warnings.append(
                f"{KEY}: {show(name)} is no further name, of which {MOST_ALIASES} are the most: it is ignored"
            )
        elif problem := aliases_problem([name]):
            warnings.append(f"{KEY}: {problem}: it is ignored")
        elif name not in names:
            names.append(name)
    return names
