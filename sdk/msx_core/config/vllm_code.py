"""Members of `vllm:` in which vLLM takes names of code that it then runs: files of a model bring none."""

import json
from collections.abc import Callable, Mapping
from typing import Any


def code_in(written: str, value: Any) -> str:
    """The path of a member by which vLLM would run code that the model names; "" without one. `written`: the name of an
    argument with underscores, whose members may follow with dots; `value`: also as a text of JSON."""
    name, *inside = _SHORT.get(written, written).split(".")
    for key in reversed(inside):
        value = {key.removesuffix("+"): value}
    members = _members(value)
    found = next((member for member, is_code in _CODE.get(name, {}).items() if is_code(members)), "")
    return found and f"{name}.{found}"


def _members(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # vLLM refuses it
            return {}
    return value if isinstance(value, Mapping) else {}


def _is_path(value: Any) -> bool:
    """Whether it is a Python name in a module, as `module.Class`."""
    parts = value.split(".") if isinstance(value, str) else []
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


_SHORT = {"spec_method": "speculative_config.method", "spec_model": "speculative_config.model"}
"""Arguments that stand for members of another."""

_CODE: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "compilation_config": {
        "backend": lambda members: _is_path(members.get("backend")),
        "inductor_passes": lambda members: bool(members.get("inductor_passes")),
    },
    "speculative_config": {
        "method": lambda members: members.get("method") == "custom_class",
        "model": lambda members: members.get("method") is None and _is_path(members.get("model")),
    },
    "structured_outputs_config": {
        "reasoning_parser_plugin": lambda members: bool(members.get("reasoning_parser_plugin")),
    },
}
