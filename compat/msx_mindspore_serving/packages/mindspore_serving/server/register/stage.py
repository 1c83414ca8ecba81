"""Adds stages to the method whose body runs."""

import inspect
from collections.abc import Callable
from typing import Any

from msx_core.servables import Model, Stage, TensorDef
from msx_core.servables.servable import FunctionUse

from ..._checks import check_int, check_str
from .body import MethodBody, current_body
from .native import NATIVE
from .signature import parameter_names

_IN_A_CONFIG = (
    "the parameter 'stage' of add_stage must be function or Model returned by declare_model, and ensure that interface "
    "'declare_model' can take effect when importing servable_config.py by the serving server"
)


def add_stage(
    stage: Callable[..., Any] | Model | str,
    *args: TensorDef,
    outputs_count: int,
    batch_size: int | None = None,
    tag: str | None = None,
) -> Any:
    """A function, a model or the name of a built-in function; returns placeholders of its outputs, one by itself.

    A function gets one instance a call, or with `batch_size` up to that many as a tuple of tuples: 0 is as many as the
    models of the method take. `tag` is what failures call the stage. Raises RuntimeError.
    """
    return stage_added(current_body("add_stage"), stage, args, outputs_count, batch_size, tag)


def stage_added(
    body: MethodBody,
    stage: Callable[..., Any] | Model | str,
    args: tuple[TensorDef, ...],
    outputs_count: int,
    batch_size: int | None,
    tag: str | None,
) -> Any:
    """The same for a body. Raises RuntimeError."""
    inputs = body.places(args)
    if inputs is None:
        raise RuntimeError(
            "Each value of parameter *args is a placeholder for data and must come from the method inputs or the "
            "outputs of add_stage"
        )
    check_int("outputs_count", outputs_count, 0)
    if batch_size is not None:
        check_int("batch_size", batch_size, 0)
    if tag is not None:
        check_str("tag", tag)
    index = len(body.stages) + 1
    if isinstance(stage, Model):
        made = _of_model(body, stage, index, inputs, outputs_count, tag)
    elif isinstance(stage, str):
        made = _of_native(stage, index, inputs, outputs_count, tag)
    elif inspect.isfunction(stage):
        made = _of_function(body, stage, index, inputs, outputs_count, batch_size, tag)
    else:
        raise RuntimeError(
            f"Check failed in method '{body.name}', the parameter 'stage' of add_stage must be function or Model "
            f"returned by declare_model, now is {type(stage)}"
        )
    body.stages.append(made)
    values = body.placeholders(index, outputs_count)
    return values[0] if outputs_count == 1 else values


_Places = tuple[tuple[int, int], ...]


def _of_model(body: MethodBody, model: Model, index: int, inputs: _Places, outputs: int, tag: str | None) -> Stage:
    if not model.declared or body.servable.models.get(model.key) is not model:
        raise RuntimeError(f"Check failed in method '{body.name}', {_IN_A_CONFIG}")
    known = model.counts.setdefault(0, (len(inputs), outputs))
    for what, new, old in (("inputs", len(inputs), known[0]), ("outputs", outputs, known[1])):
        if new != old:
            raise RuntimeError(
                f"Raise failed: RegisterInputOutputInfo failed, {what} count {new} not match old count {old}, "
                f"model: {model.key}"
            )
    return Stage(index, inputs, outputs, tag or f"Model '{model.key}'", model.key, model=model)


def _of_native(name: str, index: int, inputs: _Places, outputs: int, tag: str | None) -> Stage:
    if name not in NATIVE:
        raise RuntimeError(f"Function '{name}' is not defined")
    for what, given, has in (("inputs", len(inputs), NATIVE[name][0]), ("outputs", outputs, NATIVE[name][1])):
        if given != has:
            raise RuntimeError(f"Function '{name}' has {has} {what}, but {given} are given in add_stage")
    return Stage(index, inputs, outputs, tag or f"Function '{name}'", name, native=name)


def _of_function(
    body: MethodBody,
    function: Callable[..., Any],
    index: int,
    inputs: _Places,
    outputs: int,
    batch_size: int | None,
    tag: str | None,
) -> Stage:
    name = f"{body.servable.name}.{function.__name__}"
    batched = batch_size is not None
    count, wanted = len(parameter_names(function)), 1 if batched else len(inputs)
    if count != wanted:
        raise RuntimeError(
            f"function {function.__name__} input args count {count} not match the count {wanted} registered in method"
        )
    _check_use(body, name, FunctionUse(function, len(inputs), outputs, batched))
    return Stage(index, inputs, outputs, tag or f"Function '{name}'", name, function, batch_size=batch_size)


def _check_use(body: MethodBody, name: str, use: FunctionUse) -> None:
    """All uses of a name agree, and the last function of that name is the one that runs."""
    last = body.servable.functions.get(name)
    if last is not None:
        for what, new, old in (
            ("inputs", use.inputs_count, last.inputs_count),
            ("outputs", use.outputs_count, last.outputs_count),
        ):
            if new != old:
                raise RuntimeError(
                    f"Stage function '{name}' {what} count {new} not match last registered count {old}, method name "
                    f"'{body.name}'"
                )
        if use.batched != last.batched:
            raise RuntimeError(
                f"Failed to add stage function {name}: parameter 'batch_size' in multiple 'add_stage' should be "
                "enabled or disabled consistently"
            )
    body.servable.functions[name] = use
