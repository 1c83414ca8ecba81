"""Functions that a `servable_config.py` calls: it declares models, and methods that are graphs of stages."""

from .call_stages import (
    call_postprocess,
    call_postprocess_pipeline,
    call_preprocess,
    call_preprocess_pipeline,
    call_servable,
)
from .context import AscendDeviceInfo, Context, CPUDeviceInfo, GPUDeviceInfo
from .method import register_method
from .model import Model, declare_model, declare_servable
from .options import AclOptions, GpuOptions
from .stage import add_stage

__all__ = [
    "AclOptions",
    "AscendDeviceInfo",
    "CPUDeviceInfo",
    "Context",
    "GPUDeviceInfo",
    "GpuOptions",
    "Model",
    "add_stage",
    "call_postprocess",
    "call_postprocess_pipeline",
    "call_preprocess",
    "call_preprocess_pipeline",
    "call_servable",
    "declare_model",
    "declare_servable",
    "register_method",
]
