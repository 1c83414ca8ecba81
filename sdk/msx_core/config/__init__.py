"""`model-config.yaml`: one typed schema, TorchServe's keys and our own.

Every key is described in docs/model-config.md.
"""

from msx_core.config.keys import (
    AdapterOptions,
    AutoscalingOptions,
    LauncherOptions,
    MindSporeOptions,
    ParallelSplit,
    RoutingOptions,
    ServableOptions,
    SpeculativeOptions,
)
from msx_core.config.layout import ParallelLayout
from msx_core.config.model_config import ModelConfig, load_model_config, parse_model_config
from msx_core.config.stages import Pipeline, StageConfig, StageRoute
from msx_core.values import ConfigError

__all__ = [
    "AdapterOptions",
    "AutoscalingOptions",
    "ConfigError",
    "LauncherOptions",
    "MindSporeOptions",
    "ModelConfig",
    "ParallelLayout",
    "ParallelSplit",
    "Pipeline",
    "RoutingOptions",
    "ServableOptions",
    "SpeculativeOptions",
    "StageConfig",
    "StageRoute",
    "load_model_config",
    "parse_model_config",
]
