"""Registers methods: the body of each runs once, with placeholders, and gives a graph of stages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msx_core.servables import TensorDef, current_servable

from ..._checks import as_strs
from .body import MethodBody, running
from .signature import parameter_names
from .source import read_calls

_Function = TypeVar("_Function", bound=Callable[..., Any])


def register_method(output_names: str | Sequence[str]) -> Callable[[_Function], _Function]:
    """A decorator: the function's name is the method's, and its parameters are the method's inputs. Raises
    RuntimeError."""
    outputs = as_strs("output_names", output_names)

    def register(function: _Function) -> _Function:
        _register(function, outputs)
        return function

    return register


def _register(function: Callable[..., Any], outputs: tuple[str, ...]) -> None:
    name = function.__name__
    inputs = parameter_names(function)
    servable = current_servable()
    calls = read_calls(name, function)
    body = MethodBody(name, servable, inputs, {call.name: call for call in calls})
    with running(body):
        returned = function(*body.placeholders(0, len(inputs)))
    _check_stages(body, len(calls))
    values = (returned,) if isinstance(returned, TensorDef) else returned
    if len(values) != len(outputs):
        raise RuntimeError(f"Method return output size {len(values)} not match registered {len(outputs)}")
    results = body.places(tuple(values))
    if results is None:
        raise RuntimeError(
            "Each value returned is a placeholder for data and must come from the method inputs or the outputs of "
            "add_stage"
        )
    servable.add_method(body.method(outputs, results, _summary(function)))


def _check_stages(body: MethodBody, written: int) -> None:
    if written and written != len(body.stages):
        raise RuntimeError(
            f"Failed to parse method {body.name}, the number of stages obtained through the AST {written} is "
            f"inconsistent with the running result {len(body.stages)}. Condition and loop statements are not supported "
            "in methods currently."
        )


def _summary(function: Callable[..., Any]) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]
