"""How a model is run: threads, and what belongs to a device."""

from collections.abc import Mapping
from typing import Any, ClassVar

from ..._checks import as_ints, check_bool, check_int, check_str

_FORMATS = ("ND", "NCHW", "NHWC", "CHWN", "NC1HWC0", "NHWC1C0")
_PRECISIONS = ("force_fp16", "allow_fp32_to_fp16", "must_keep_origin_dtype", "allow_mix_precision")
_BUFFERS = ("off_optimize", "l1_optimize", "l2_optimize", "l1_and_l2_optimize")


class DeviceInfo:
    """Options of a device, all of them texts. `given` holds those that were given."""

    kind: ClassVar[str]
    title: ClassVar[str]
    word: ClassVar[str] = "option"
    allowed: ClassVar[Mapping[str, tuple[tuple[str, ...], str]]]
    """Values of each option, () for any, and what a refusal says of them."""

    def __init__(self, **options: str) -> None:
        """Raises RuntimeError."""
        for name, value in options.items():
            if name not in self.allowed:
                raise RuntimeError(f"Set {self.kind} device info failed, unsupported {self.word} {name}")
            check_str(name, value)
            values, refusal = self.allowed[name]
            if values and value not in values:
                raise RuntimeError(f"{self.title} device info {refusal} '{value}'")
        self.given = options


_PLAIN = {"precision_mode": (("origin", "fp16"), "'precision_mode' can only be 'origin', 'fp16'. given")}


class CPUDeviceInfo(DeviceInfo):
    """`precision_mode`."""

    kind, title, allowed = "cpu", "Cpu", _PLAIN


class GPUDeviceInfo(DeviceInfo):
    """`precision_mode`."""

    kind, title, allowed = "gpu", "Gpu", _PLAIN


class AscendDeviceInfo(DeviceInfo):
    """The options of an Ascend NPU's compiler."""

    kind, title, word = "ascend", "Ascend", "parameter"
    allowed = {
        "insert_op_cfg_path": ((), ""),
        "input_format": (
            _FORMATS,
            "'input_format' can only be 'ND', 'NCHW', 'NHWC', 'CHWN', 'NC1HWC0', or 'NHWC1C0', actually given",
        ),
        "input_shape": ((), ""),
        "output_type": (  # names another option, as MindSpore Serving does
            ("FP32", "FP16", "UINT8"),
            "'op_select_impl_mode' can only be 'FP32'(default), 'FP16' or 'UINT8', actually given",
        ),
        "precision_mode": (
            _PRECISIONS,
            "'precision_mode' can only be 'force_fp16'(default), 'allow_fp32_to_fp16' 'must_keep_origin_dtype' or "
            "'allow_mix_precision', actually given",
        ),
        "op_select_impl_mode": (
            ("high_performance", "high_precision"),
            "'op_select_impl_mode' can only be 'high_performance'(default) or 'high_precision', actually given",
        ),
        "fusion_switch_config_path": ((), ""),
        "buffer_optimize_mode": (
            _BUFFERS,
            "'buffer_optimize_mode' can only be 'off_optimize'(default), 'l1_optimize', 'l2_optimize' or "
            "'l1_and_l2_optimize', actually given",
        ),
    }


class Context:
    """Threads of a model, and device infos. An attribute is None, or empty, if it was not given."""

    def __init__(self, **options: Any) -> None:
        """`thread_num`, `thread_affinity_core_list`, `enable_parallel`. Raises RuntimeError."""
        self.thread_num: int | None = None
        self.thread_affinity_core_list: tuple[int, ...] = ()
        self.enable_parallel: bool | None = None
        self.device_infos: dict[str, DeviceInfo] = {}
        for name, value in options.items():
            if name == "thread_num":
                check_int(name, value, 1)
            elif name == "thread_affinity_core_list":
                value = _cores(name, value)
            elif name == "enable_parallel":
                check_bool(name, value)
            else:
                raise RuntimeError(f"Set context failed, unsupported option {name}")
            setattr(self, name, value)

    def append_device_info(self, device_info: DeviceInfo) -> None:
        """Raises RuntimeError."""
        if not isinstance(device_info, CPUDeviceInfo | GPUDeviceInfo | AscendDeviceInfo):
            raise RuntimeError(
                "Parameter 'device_info' should instance of CPUDeviceInfo, GPUDeviceInfo, or AscendDeviceInfo, but "
                f"actually {type(device_info)}"
            )
        if device_info.kind in self.device_infos:
            raise RuntimeError(f"Device info of type {device_info.kind} has already been appended")
        self.device_infos[device_info.kind] = device_info


def _cores(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple | list):
        raise RuntimeError(f"Parameter '{name}' should be tuple/list of int, but actually {type(value)}")
    return as_ints(name, value)
