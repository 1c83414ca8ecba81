"""A method of a servable: a graph of stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msx_core.servables.model import Model


class _TensorDef:
    """Stands for a value while a method's body is run once: output `at` of a stage, or an input of the method.

    It has MindSpore Serving's name, which Python's own messages show when it is unpacked by mistake.
    """

    __slots__ = ("at", "method", "stage")

    def __init__(self, method: object, stage: int, at: int) -> None:
        self.method, self.stage, self.at = method, stage, at


TensorDef = _TensorDef


@dataclass(frozen=True)
class Stage:
    """One step of a method. `index` begins with 1; 0 stands for the method's inputs.

    One of `function`, `model` and `native` (the name of a function that the server brings) is given. A function gets
    one instance a call when `batch_size` is None, otherwise as many as that; with 0 as many as the models take.
    """

    index: int
    inputs: tuple[tuple[int, int], ...]
    """Stage that each input comes from, and its place among that stage's outputs."""
    outputs_count: int
    tag: str
    """Its name in error messages."""
    name: str
    """`{servable}.{function}`, or the model's key."""
    function: Callable[..., Any] | None = field(default=None, compare=False)
    model: Model | None = None
    native: str = ""
    batch_size: int | None = None
    subgraph: int = 0

    @property
    def uses_inputs_only(self) -> bool:
        """Whether it takes nothing from other stages."""
        return all(stage == 0 for stage, _ in self.inputs)


@dataclass(frozen=True)
class ServableMethod:
    """Method that clients call. `results` says where each output comes from, as `Stage.inputs` does."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    results: tuple[tuple[int, int], ...]
    summary: str = ""

    def batch_size(self, stage: Stage, model_batches: Sequence[int]) -> int:
        """How many instances a call of the stage may take; `model_batches` are those of the method's models."""
        if stage.batch_size:
            return stage.batch_size
        return (min if stage.uses_inputs_only else max)(model_batches, default=1)
