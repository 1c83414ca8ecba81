"""Cards and MIG instances as devices of the server."""

from dataclasses import dataclass

from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.nvidia.messages import Gpu, MigInstance, Xid
from msx_frontend.devices.nvidia.visible import entries


@dataclass(frozen=True)
class NvidiaGpu(Device):
    """`id` is the UUID of a card or of a MIG instance."""

    gpu: str = ""
    """UUID of the card."""
    instance: tuple[int, int] | None = None
    """As `instance_of` gives it."""


def devices_of(gpu: Gpu) -> list[NvidiaGpu]:
    """The card, or its MIG instances: a process sees one of these at most."""
    if gpu.instances is None:
        return [NvidiaGpu(gpu.uuid, gpu.name, gpu=gpu.uuid)]
    return [NvidiaGpu(one.uuid, one.name, alone=True, gpu=gpu.uuid, instance=instance_of(one)) for one in gpu.instances]


def instance_of(numbered: MigInstance | Xid) -> tuple[int, int] | None:
    """Numbers of the GPU instance and the compute instance; None for the whole card."""
    if numbered.gpu_instance is None or numbered.compute_instance is None:
        return None
    return numbered.gpu_instance, numbered.compute_instance


def simulated_gpus(listed: str, count: int) -> list[Device]:
    """GPUs with the names of `listed`, a list of visible devices; where it has none, with the numbers from 0 on."""
    ids = [_simulated_id(name) for name in entries(listed) or map(str, range(count))]
    return [Device(id, "simulated", simulated=True, alone=id.startswith("MIG-")) for id in ids[:count]]


def _simulated_id(name: str) -> str:
    return f"GPU-00000000-0000-0000-0000-{name:0>12}" if name.isdecimal() else name
