"""The methods of a servable beside those that it declares."""

from collections.abc import Mapping

from msx_core.servables import Servable, ServableMethod, Stage
from msx_mindspore_serving.servables.models import ServedModel


def with_model_methods(servable: Servable, models: Mapping[str, ServedModel]) -> dict[str, ServableMethod]:
    """Each subgraph is a method by itself: `@call_{model}_{subgraph}`, with inputs x0, … and outputs y0, …"""
    methods = dict(servable.methods)
    for key, served in models.items():
        for number, subgraph in enumerate(served.subgraphs):
            inputs, outputs = len(subgraph.inputs), len(subgraph.outputs)
            name = f"@call_{key}_{number}"
            stage = Stage(
                1,
                tuple((0, at) for at in range(inputs)),
                outputs,
                f"Model '{key}'",
                key,
                model=servable.models[key],
                subgraph=number,
            )
            methods[name] = ServableMethod(
                name,
                tuple(f"x{at}" for at in range(inputs)),
                tuple(f"y{at}" for at in range(outputs)),
                (stage,),
                tuple((1, at) for at in range(outputs)),
                f"the model {key} by itself",
            )
    return methods
