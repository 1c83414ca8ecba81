"""Older names of device infos, for `options=` of `declare_model`."""

from .context import AscendDeviceInfo, GPUDeviceInfo


class AclOptions(AscendDeviceInfo):
    """Deprecated: AscendDeviceInfo in a Context."""


class GpuOptions(GPUDeviceInfo):
    """Deprecated: GPUDeviceInfo in a Context."""
