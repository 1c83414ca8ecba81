"""Declarations of a `servable_config.py` of MindSpore Serving: models, and methods that are graphs of stages.

`mindspore_serving.server.register` makes these descriptions. They are here, because a servable imports it under that
name and the worker under another: both must mean the same classes.
"""

from msx_core.servables.loading import load_servable
from msx_core.servables.method import ServableMethod, Stage, TensorDef
from msx_core.servables.model import Model, ModelDeclaration
from msx_core.servables.servable import CONFIG_NAME, Servable, current_servable

__all__ = [
    "CONFIG_NAME",
    "Model",
    "ModelDeclaration",
    "Servable",
    "ServableMethod",
    "Stage",
    "TensorDef",
    "current_servable",
    "load_servable",
]
