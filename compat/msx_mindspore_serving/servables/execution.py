"""Runs the stages of a method for a batch of instances.

Functions run in processes of their own where there are some, meanwhile models run here. The latest stage that has a
full batch goes first, so that what is begun is ended.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from msx_core.servables import ServableMethod, Stage
from msx_mindspore_serving.servables.failures import call_failed
from msx_mindspore_serving.servables.function_pool import FunctionPool, Handout
from msx_mindspore_serving.servables.functions import Instances, Outcome, StageFunction
from msx_mindspore_serving.servables.models import ServedModel
from msx_mindspore_serving.servables.native import NATIVE
from msx_mindspore_serving.servables.values import to_function
from msx_sdk.errors import PredictionError

Place = tuple[int, int]
_SINGLE = 64
"""The most instances that a process gets at once for a function that takes them one by one."""


class _Instance:
    """The values that it has so far, by stage and place; its failure, once it has one."""

    __slots__ = ("failed", "values")

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.values: dict[Place, Any] = {(0, at): value for at, value in enumerate(inputs)}
        self.failed: PredictionError | None = None


class MethodRun:
    """One call of a method. `most` is the largest batch of a model that takes any number of instances."""

    def __init__(
        self, method: ServableMethod, models: Mapping[str, ServedModel], functions: FunctionPool | None, most: int
    ) -> None:
        self._method, self._models, self._pool = method, models, functions
        used = [models[stage.model.key].batch_size or most for stage in method.stages if stage.model is not None]
        self._most = most
        self._sizes = {stage.index: self._size(stage, used) for stage in method.stages}
        self._waiting: dict[int, deque[_Instance]] = {stage.index: deque() for stage in method.stages}
        self._running: dict[int, int] = dict.fromkeys(self._waiting, 0)
        self._uses = _uses(method)

    def run(self, inputs: Sequence[Sequence[Any]]) -> list[dict[str, Any] | PredictionError]:
        """The outputs of each instance, or its failure; `inputs` has a value an input of the method."""
        instances = [_Instance(values) for values in inputs]
        self._put(0, instances)
        while self._step():
            pass
        return [one.failed or self._outputs(one) for one in instances]

    def _step(self) -> bool:
        """Whether there is more to do."""
        self._hand_out()
        for stage in reversed(self._method.stages):
            if self._here(stage) and self._ready(stage):
                self._run_here(stage)
                return True
        if self._pool is None or not (any(self._waiting.values()) or any(self._running.values())):
            return False
        if done := self._pool.wait():
            chunk, outcomes = done
            self._running[chunk.stage.index] -= len(chunk.members)
            self._keep(chunk.stage, chunk.members, outcomes)
        return True

    def _here(self, stage: Stage) -> bool:
        return stage.function is None or self._pool is None

    def _ready(self, stage: Stage) -> bool:
        """It has a full batch, or nothing can join what it has."""
        waiting = len(self._waiting[stage.index])
        before = sum(len(self._waiting[i]) + self._running[i] for i in range(1, stage.index))
        return waiting > 0 and (waiting >= self._sizes[stage.index] or before == 0)

    def _run_here(self, stage: Stage) -> None:
        members = self._take(stage, self._sizes[stage.index])
        if stage.model is not None:
            self._run_model(stage, self._models[stage.model.key], members)
        elif stage.native:
            self._keep(stage, members, NATIVE[stage.native](self._inputs(stage, members)))
        else:
            function = stage_function(stage, self._method.name)
            self._keep(stage, members, function.run(self._inputs(stage, members)))

    def _run_model(self, stage: Stage, model: ServedModel, members: list[_Instance]) -> None:
        good = []
        for member in members:
            member.failed = model.check(self._values(stage, member), stage.subgraph)
            if member.failed is None:
                good.append(member)
        if not good:
            return
        results = model.run([self._values(stage, member) for member in good], stage.subgraph)
        for member, result in zip(good, results, strict=True):
            if isinstance(result, PredictionError):
                member.failed = result
            else:
                self._set(stage, member, result)
        self._put(stage.index, [member for member in good if member.failed is None])

    def _hand_out(self) -> None:
        """Gives every idle process something to do."""
        pool = self._pool
        if pool is None:
            return
        for stage in reversed(self._method.stages):
            while stage.function is not None and pool.idle and self._ready_for(stage):
                members = self._take(stage, self._share(stage, pool.idle))
                inputs = [self._values(stage, member) for member in members]
                self._running[stage.index] += len(members)
                pool.give(Handout(stage, self._method.name, members), inputs)

    def _ready_for(self, stage: Stage) -> bool:
        return bool(self._waiting[stage.index]) if stage.batch_size is None else self._ready(stage)

    def _share(self, stage: Stage, idle: int) -> int:
        """How many instances a process gets: of those that go one by one, as many as the others."""
        if stage.batch_size is not None:
            return self._sizes[stage.index]
        return min(_SINGLE, -(-len(self._waiting[stage.index]) // idle))

    def _size(self, stage: Stage, models: Sequence[int]) -> int:
        if stage.model is not None:
            return self._models[stage.model.key].batch_size or self._most
        return self._method.batch_size(stage, models)

    def _take(self, stage: Stage, count: int) -> list[_Instance]:
        waiting = self._waiting[stage.index]
        return [waiting.popleft() for _ in range(min(count, len(waiting)))]

    def _put(self, done: int, instances: Sequence[_Instance]) -> None:
        """They wait for the stage behind this one, if there is one."""
        if done + 1 in self._waiting:
            self._waiting[done + 1].extend(instances)

    def _keep(self, stage: Stage, members: Sequence[_Instance], outcomes: Sequence[Outcome]) -> None:
        for member, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, list):
                self._set(stage, member, outcome)
            else:
                member.failed = call_failed(stage, self._method.name, outcome.text)
        self._put(stage.index, [member for member in members if member.failed is None])

    def _set(self, stage: Stage, member: _Instance, outputs: Sequence[Any]) -> None:
        for at, value in enumerate(outputs):
            member.values[stage.index, at] = value

    def _values(self, stage: Stage, member: _Instance) -> list[Any]:
        return [member.values[place] for place in stage.inputs]

    def _inputs(self, stage: Stage, members: Sequence[_Instance]) -> Instances:
        """As functions get them."""
        return [
            [to_function(member.values[place], shared=self._uses[place] > 1) for place in stage.inputs]
            for member in members
        ]

    def _outputs(self, one: _Instance) -> dict[str, Any]:
        return {name: one.values[place] for name, place in zip(self._method.outputs, self._method.results, strict=True)}


def stage_function(stage: Stage, method: str) -> StageFunction:
    assert stage.function is not None
    return StageFunction(stage.name, stage.function, stage.batch_size is not None, stage.outputs_count, method)


def _uses(method: ServableMethod) -> dict[Place, int]:
    """How often each value is used."""
    uses: dict[Place, int] = {}
    for place in [place for stage in method.stages for place in stage.inputs] + list(method.results):
        uses[place] = uses.get(place, 0) + 1
    return uses
