"""The method whose body runs now: what stages it has so far."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from msx_core.servables import Servable, ServableMethod, Stage, TensorDef

from .source import CallSource


class MethodBody:
    """Collects the stages of one method. `calls` are the deprecated calls of its source, by name."""

    def __init__(
        self, name: str, servable: Servable, inputs: tuple[str, ...], calls: Mapping[str, CallSource] | None = None
    ) -> None:
        self.name, self.servable, self.inputs = name, servable, inputs
        self.calls = calls or {}
        self.stages: list[Stage] = []
        self.called: list[str] = []
        """The deprecated calls that have run, in order."""

    def placeholders(self, stage: int, count: int) -> tuple[TensorDef, ...]:
        return tuple(TensorDef(self, stage, at) for at in range(count))

    def places(self, values: tuple[Any, ...]) -> tuple[tuple[int, int], ...] | None:
        """Where the values come from; None if one of them is not a placeholder of this method."""
        if not all(isinstance(value, TensorDef) and value.method is self for value in values):
            return None
        return tuple((value.stage, value.at) for value in values)

    def method(self, outputs: tuple[str, ...], results: tuple[tuple[int, int], ...], summary: str) -> ServableMethod:
        return ServableMethod(self.name, self.inputs, outputs, tuple(self.stages), results, summary)


_body: ContextVar[MethodBody | None] = ContextVar("body", default=None)


class running:
    """`with running(body):` the calls of stages belong to it."""

    def __init__(self, body: MethodBody) -> None:
        self._body = body

    def __enter__(self) -> None:
        self._token = _body.set(self._body)

    def __exit__(self, *_: object) -> None:
        _body.reset(self._token)


def current_body(call: str) -> MethodBody:
    """Raises RuntimeError where no method's body runs."""
    body = _body.get()
    if body is None:
        raise RuntimeError(f"'{call}' should be called in a function that is decorated by 'register_method'")
    return body
