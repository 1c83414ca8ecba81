"""Base of all emulated operators."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
from mindspore import Tensor

from tests.emulated_ascend.refused import Refused, describe

HALF = (ms.float16, ms.bfloat16)


@dataclass
class Call:
    """One call, before it is checked."""

    operator: str
    attributes: dict[str, Any]
    """Arguments of the constructor."""
    arguments: dict[str, Any]

    def __str__(self) -> str:
        given = {**self.attributes, **self.arguments}
        return f"{self.operator}({', '.join(f'{name}={describe(value)}' for name, value in given.items())})"


@dataclass
class Chip:
    """Chip that all operators of a process run on, and its listeners."""

    name: str = "910B"
    listeners: list[Callable[[Call], None]] = field(default_factory=list)

    @property
    def is_310p(self) -> bool:
        return self.name == "310P"


CHIP = Chip()


class Operator:
    """A constructor keeps what it was given as attributes of the same names; `compute` is the call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(self.compute).bind(*args, **kwargs)
        bound.apply_defaults()
        call = Call(type(self).__name__, dict(vars(self)), dict(bound.arguments))
        for listener in CHIP.listeners:
            listener(call)
        changed = copy.copy(self)
        vars(changed).update(call.attributes)
        return changed.compute(**call.arguments)

    compute: Callable[..., Any]

    def require(self, holds: Any, argument: str, came: Any, rule: str) -> None:
        if not holds:
            raise Refused(type(self).__name__, argument, came, rule)

    def tensor(self, argument: str, came: Any, dtypes: tuple[Any, ...], *ranks: int) -> None:
        """Any number of axes where no `ranks` are given."""
        self.require(isinstance(came, Tensor), argument, came, "it must be a tensor")
        names = " or ".join(str(dtype) for dtype in dtypes)
        self.require(came.dtype in dtypes, argument, came, f"its dtype must be {names}")
        if ranks:
            axes = " or ".join(map(str, ranks))
            self.require(len(came.shape) in ranks, argument, came, f"it must have {axes} axes")
        if CHIP.is_310p:
            self.require(came.dtype != ms.bfloat16, argument, came, "310P does not know bfloat16")

    def same_dtype(self, argument: str, came: Any, other: str, as_that: Any) -> None:
        self.require(came.dtype == as_that.dtype, argument, came, f"its dtype must be {other}'s, {as_that.dtype}")

    def shape(self, argument: str, came: Any, *shape: int) -> None:
        self.require(tuple(came.shape) == shape, argument, came, f"its shape must be {list(shape)}")

    def constant(self, **allowed: Any) -> None:
        """Attributes that have one value each, or one of a tuple."""
        for name, value in allowed.items():
            values, came = value if isinstance(value, tuple) else (value,), getattr(self, name)
            self.require(came in values, name, came, f"it must be {' or '.join(map(repr, values))}")

    def absent(self, **given: Any) -> None:
        for name, value in given.items():
            self.require(value is None, name, value, "it must be None: no decoder passes it")

    def positive(self, *names: str) -> None:
        for name in names:
            came = getattr(self, name)
            self.require(came > 0, name, came, "it must be more than 0")
