"""Calls the function of a stage with instances, and makes values of what it returns."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msx_mindspore_serving.servables.values import IllegalResult, from_function

Instances = Sequence[Sequence[Any]]
"""Values of each instance, one an input."""


class Raised(NamedTuple):
    """Why a function has no outputs for an instance."""

    text: str


Outcome = list[Any] | Raised
"""The outputs of one instance."""

log = logging.getLogger("msx.servable")
_RAISED = (Exception, SystemExit, GeneratorExit)


class StageFunction(NamedTuple):
    """A function as a stage uses it. `name` is `{servable}.{function}`."""

    name: str
    function: Callable[..., Any]
    batched: bool
    outputs_count: int
    method: str

    def run(self, instances: Instances) -> list[Outcome]:
        """One outcome an instance, in order. After an instance that fails while results are made one by one, the
        function is called again with those behind it."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(instances):
            outcomes += self._call(instances[len(outcomes) :])
        return outcomes

    def _call(self, instances: Instances) -> list[Outcome]:
        """The outcomes of the first instances, up to one that failed."""
        try:
            results = self._results(instances)
        except _RAISED as error:
            return [self._raised(error)] * len(instances)
        outcomes: list[Outcome] = []
        for _ in instances:
            try:
                outcomes.append(self._outputs(next(results)))
            except StopIteration:
                return [Raised(self._too_few(len(outcomes), len(instances)))] * len(instances)
            except _RAISED as error:
                outcomes.append(self._raised(error))
                break
        _close(results)
        return outcomes

    def _results(self, instances: Instances) -> Iterator[Any]:
        if self.batched:
            return iter(self.function(tuple(map(tuple, instances))))
        return (self.function(*instance) for instance in instances)

    def _outputs(self, result: Any) -> Outcome:
        values = result if isinstance(result, tuple | list) else (result,)
        if len(values) != self.outputs_count:
            return Raised(
                f"The outputs number {len(values)} of one instance returned by function '{self.name}' is not equal to "
                f"the outputs number {self.outputs_count}  registered in method {self.method}"
            )
        try:
            return [from_function(value) for value in values]
        except IllegalResult as error:
            return Raised(str(error))

    def _too_few(self, returned: int, given: int) -> str:
        return (
            f"The number {returned} of instances returned by function '{self.name}' is not equal to the number {given} "
            "of instances provided to this function."
        )

    def _raised(self, error: BaseException) -> Raised:
        log.error("the function %s failed", self.name, exc_info=error)
        return Raised(_text_of(error))


def _text_of(error: BaseException) -> str:
    """Text of the exception, as UTF-8 can hold it."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:
        return type(error).__name__


def _close(results: Iterator[Any]) -> None:
    """Ends a generator that could give more."""
    close = getattr(results, "close", None)
    if callable(close):
        try:
            close()
        except _RAISED:
            log.exception("a generator failed when it was closed")
