"""The parameters of a method or of a stage's function."""

import inspect
from collections.abc import Callable
from typing import Any

_REFUSED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Raises RuntimeError for parameters that are not given by position, one value each."""
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind in _REFUSED:
            raise RuntimeError(f"'{function.__name__}' input {name} cannot be {parameter.kind.name} !")
    return tuple(parameters)
