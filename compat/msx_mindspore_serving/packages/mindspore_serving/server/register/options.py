"""Older names of device infos, for `options=` of `declare_model`."""

from .context import AscendDeviceInfo, GPUDeviceInfo
from .deprecation import warn_deprecated


class AclOptions(AscendDeviceInfo):
    """Deprecated: AscendDeviceInfo in a Context."""

    def __init__(self, **options: str) -> None:
        """Raises RuntimeError."""
        warn_deprecated("AclOptions", "AscendDeviceInfo", since="1.6.0")
        super().__init__(**options)


class GpuOptions(GPUDeviceInfo):
    """Deprecated: GPUDeviceInfo in a Context."""

    def __init__(self, **options: str) -> None:
        """Raises RuntimeError."""
        warn_deprecated("GpuOptions", "GPUDeviceInfo", since="1.6.0")
        super().__init__(**options)
