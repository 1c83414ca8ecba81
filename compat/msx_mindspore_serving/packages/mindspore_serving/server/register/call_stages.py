"""The deprecated calls in methods: one function before the model, the model, and one function after it."""

from collections.abc import Callable
from typing import Any

from msx_core.servables import Model, TensorDef

from .body import MethodBody, current_body
from .deprecation import warn_deprecated
from .stage import stage_added

_BEFORE, _MODEL, _AFTER = "call_preprocess", "call_servable", "call_postprocess"
_ORDER = (_BEFORE, _MODEL, _AFTER)


def call_preprocess(preprocess_fun: Callable[..., Any], *args: TensorDef) -> Any:
    """Deprecated: `add_stage`. The function gets one instance a call. Raises RuntimeError."""
    return _function(_BEFORE, _BEFORE, preprocess_fun, args, None)


def call_preprocess_pipeline(preprocess_fun: Callable[..., Any], *args: TensorDef) -> Any:
    """Deprecated: `add_stage` with `batch_size=0`. Raises RuntimeError."""
    return _function(_BEFORE, f"{_BEFORE}_pipeline", preprocess_fun, args, 0)


def call_postprocess(postprocess_fun: Callable[..., Any], *args: TensorDef) -> Any:
    """Deprecated: `add_stage`. The function gets one instance a call. Raises RuntimeError."""
    return _function(_AFTER, _AFTER, postprocess_fun, args, None)


def call_postprocess_pipeline(postprocess_fun: Callable[..., Any], *args: TensorDef) -> Any:
    """Deprecated: `add_stage` with `batch_size=0`. Raises RuntimeError."""
    return _function(_AFTER, f"{_AFTER}_pipeline", postprocess_fun, args, 0)


def call_servable(*args: TensorDef) -> Any:
    """Deprecated: `add_stage` with the model. Raises RuntimeError."""
    warn_deprecated(_MODEL, "add_stage")
    body = current_body(_MODEL)
    _check_order(body, _MODEL, _MODEL)
    return stage_added(body, _only_model(body), args, _outputs_count(body, _MODEL), None, None)


def _function(kind: str, name: str, function: Any, args: tuple[TensorDef, ...], batch_size: int | None) -> Any:
    warn_deprecated(name, "add_stage")
    body = current_body(name)
    _check_order(body, kind, name)
    count = _outputs_count(body, name)
    return stage_added(body, function, args, count, batch_size, "Preprocess" if kind == _BEFORE else "Postprocess")


def _check_order(body: MethodBody, kind: str, name: str) -> None:
    """Check that each is called once at most, and in order. Raises RuntimeError."""
    failed = f"Check failed in method '{body.name}', "
    if any(_kind(called) == kind for called in body.called):
        raise RuntimeError(f"{failed}{_shown(kind)} should not be invoked more than once")
    for called in body.called:
        if _ORDER.index(_kind(called)) > _ORDER.index(kind):
            raise RuntimeError(f"{failed}{_shown(_kind(called))} should be invoked after {name}")
    body.called.append(name)


def _kind(name: str) -> str:
    return name.removesuffix("_pipeline")


def _shown(kind: str) -> str:
    return kind if kind == _MODEL else f"{kind} or {kind}_pipeline"


def _outputs_count(body: MethodBody, name: str) -> int:
    """Raises RuntimeError if the source does not show the call: it goes by another name there."""
    if name not in body.calls:
        raise RuntimeError(f"Not find the invoke of '{name}'")
    return body.calls[name].outputs_count


def _only_model(body: MethodBody) -> Model:
    models = list(body.servable.models.values())
    if not models:
        raise RuntimeError("There is no model declared, you can use declare_model to declare models.")
    if len(models) > 1:
        raise RuntimeError(
            "There are more than one servable declared when the interface 'call_servable' is used, use 'add_stage' to "
            "replace 'call_servable'"
        )
    return models[0]
