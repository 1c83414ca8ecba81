"""`model-config.yaml`: one typed schema, TorchServe's keys and our own.

Every key is described in docs/model-config.md.
"""

from msx_sdk._internal.config.keys import (
    AdapterOptions,
    AutoscalingOptions,
    LauncherOptions,
    MindSporeOptions,
    ParallelSplit,
    RoutingOptions,
    ServableOptions,
    SpeculativeOptions,
)
from msx_sdk._internal.config.layout import ParallelLayout
from msx_sdk._internal.config.model_config import ModelConfig, load_model_config, parse_model_config
from msx_sdk._internal.config.stages import Pipeline, StageConfig
from msx_sdk._internal.values import ConfigError

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
    "load_model_config",
    "parse_model_config",
]
