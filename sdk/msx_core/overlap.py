"""Rules of overlap: whether a worker may preprocess one batch while `inference` of the batch before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msx_core.config.keys import ModelKeys
from msx_core.resolved_handler import HandleKind, ResolvedHandler
from msx_core.steps import MARK, STEPS, ThreeSteps

__all__ = ["may_overlap", "sequential_reason", "steps_of"]


def steps_of(handler: ResolvedHandler) -> ThreeSteps | None:
    """The mark of the handler's `handle`; None for one of another kind."""
    bound = getattr(handler.handle, "__self__", None) is handler.owner
    mark = getattr(handler.handle, MARK, None) if bound else None
    return mark if isinstance(mark, ThreeSteps) else None


def sequential_reason(handler: ResolvedHandler, keys: ModelKeys, *, world_size: int = 1, envelope: str = "") -> str:
    """Why the handler's batches run one after the other, a sentence without its full stop; "" where they overlap.

    To be called once the handler is initialised, as that may choose a `handle`.
    """
    if keys.overlap is False:
        return "model-config.yaml has overlap: false"
    return (
        _cannot(handler, keys, world_size, envelope)
        or ("" if keys.overlap else _not_wanted(handler))
        or _own_reason(handler.owner)
    )


def may_overlap(handler: ResolvedHandler, keys: ModelKeys, *, world_size: int = 1) -> bool:
    """Whether the handler may turn out to overlap once it is initialised."""
    wanted = keys.overlap or bool(getattr(handler.owner, "overlap", False))
    return wanted and not _cannot(handler, keys, world_size, "")


def _cannot(handler: ResolvedHandler, keys: ModelKeys, world_size: int, envelope: str) -> str:
    if handler.kind is not HandleKind.PLAIN:
        return f"its handle() returns {handler.kind.value}"
    if keys.continuous_batching:
        return "continuousBatching calls the handler once a step"
    if keys.stateful:
        return "a request of a sequence needs the state that the request before it leaves"
    if world_size > 1:
        return "the ranks of its group make each call together"
    if envelope:
        return f"service_envelope={envelope} encloses each call"
    if (steps := steps_of(handler)) is None:
        return "its handle() is not that of a base class with preprocess, inference and postprocess"
    overridden = _overridden(handler.owner, steps.others, _definer(handler.owner, "handle"))
    return overridden and f"{overridden}, which its handle() calls"


def _not_wanted(handler: ResolvedHandler) -> str:
    """A class speaks with `overlap` for the steps that it inherits and defines: a subclass may keep requests in
    `self`."""
    kind, steps = type(handler.owner), steps_of(handler) or ThreeSteps()
    speaks = next((base for base in kind.__mro__ if "overlap" in vars(base)), None)
    if speaks is None or not vars(speaks)["overlap"]:
        return f"neither model-config.yaml nor the class {kind.__name__} says overlap"
    overridden = _overridden(handler.owner, (*STEPS, *steps.names, "handle"), speaks)
    return overridden and f"{overridden}, which may keep a request on self"


def _overridden(owner: Any, names: Iterable[str], known: type[Any]) -> str:
    """The first of these methods that the object has, or a class that `known` does not inherit from; "" for none."""
    for name in names:
        if name in getattr(owner, "__dict__", ()):
            return f"its {name}() is set on the object"
        if (definer := _definer(owner, name)) not in known.__mro__:
            return f"{definer.__name__} overrides {name}()"
    return ""


def _definer(owner: Any, name: str) -> type[Any]:
    """The class that has the method of this name; `object` for a name that none has."""
    return next((base for base in type(owner).__mro__ if name in vars(base)), object)


def _own_reason(owner: Any) -> str:
    """The handler's own reason, which a method `sequential_reason` returns."""
    own = getattr(owner, "sequential_reason", None)
    return str(own()) if callable(own) else ""
