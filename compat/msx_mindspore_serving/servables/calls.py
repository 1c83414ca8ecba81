"""`Model.call` of functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from msx_core.servables import ModelDeclaration
from msx_core.servables.model import ModelCallError
from msx_mindspore_serving.servables.functions import Instances
from msx_mindspore_serving.servables.models import ServedModel
from msx_mindspore_serving.servables.values import IllegalResult, from_function, to_function
from msx_sdk.errors import PredictionError


class ModelCalls:
    """Runs models for functions."""

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        self._models = models

    def from_function(
        self, declaration: ModelDeclaration, subgraph: int, instances: Instances
    ) -> tuple[tuple[Any, ...], ...]:
        """Call a model for a function in this process. Raises ModelCallError."""
        try:
            values = [[from_function(value) for value in instance] for instance in instances]
        except IllegalResult as error:
            raise ModelCallError(str(error)) from None
        outputs = self.from_process(declaration.key, subgraph, values)
        return tuple(tuple(to_function(value) for value in one) for one in outputs)

    def from_process(self, key: str, subgraph: int, instances: Instances) -> Sequence[Sequence[Any]]:
        """Call a model for a function in another process: values in and out. Raises ModelCallError, by the first
        instance that fails."""
        model = self._models[key]
        count = len(model.subgraphs[subgraph].inputs)
        for number, instance in enumerate(instances):
            if len(instance) != count:
                raise ModelCallError(
                    f"The inputs count {len(instance)} of instance {number} is not equal to the inputs count {count} "
                    "of the model"
                )
            if (wrong := model.check(instance, subgraph)) is not None:
                raise ModelCallError(wrong.message)
        outputs = []
        for result in model.run(instances, subgraph):
            if isinstance(result, PredictionError):
                raise ModelCallError(result.message)
            outputs.append(result)
        return outputs
