"""Reads the deprecated calls of a method from its source: how many outputs each has is not said elsewhere."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CALLS = (
    "call_preprocess",
    "call_preprocess_pipeline",
    "call_servable",
    "call_postprocess",
    "call_postprocess_pipeline",
)


class CallSource(NamedTuple):
    """One of `CALLS` as the source has it: the number of variables that it is assigned to."""

    name: str
    outputs_count: int


def read_calls(method: str, function: Callable[..., Any]) -> list[CallSource]:
    """The deprecated calls in the function's body, which then may have nothing beside them; none for a method of
    `add_stage`. Raises RuntimeError."""
    definition = _definition(function)
    if definition is None:
        return []
    names = [name for name in map(_called, ast.walk(definition)) if name]
    if not names:
        return []
    shown = ";".join(dict.fromkeys(names))
    return [call for node in definition.body for call in _read(method, node, shown)]


def _definition(function: Callable[..., Any]) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # typed into an interpreter
        return None
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)


def _read(method: str, node: ast.stmt, names: str) -> Iterator[CallSource]:
    """The call of one statement: `a = …` or `a, b = …`. Raises RuntimeError."""
    name = _called(node.value) if isinstance(node, ast.Assign) else ""
    if isinstance(node, ast.Assign) and name and len(node.targets) == 1:
        value, target = node.value, node.targets[0]
        if not isinstance(value, ast.Call) or (name != "call_servable" and not value.args):
            raise RuntimeError(f"Invalid '{name}' invoke args")
        yield CallSource(name, len(target.elts) if isinstance(target, ast.Tuple | ast.List) else 1)
    elif any(map(_called, ast.walk(node))):
        raise RuntimeError(_complex(method, names))
    elif not isinstance(node, ast.Return) and not _is_docstring(node):
        raise RuntimeError(f"{_complex(method, names)}, code {type(node).__name__}: line {node.lineno}")


def _complex(method: str, names: str) -> str:
    return (
        f"Failed to parse method '{method}', complex statements such as conditions and loops are not supported in "
        f"register_method when the interface '{names}' is used, use 'add_stage' to replace '{names}'"
    )


def _called(node: ast.AST) -> str:
    """Which of `CALLS` a node calls, by its name or as an attribute; "" for another node."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name if name in CALLS else ""


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
