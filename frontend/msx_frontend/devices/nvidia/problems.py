"""Why GPUs cannot be read, and what helps."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msx_frontend.devices.nvidia.library import NAME
from msx_frontend.devices.nvidia.messages import Inventory
from msx_frontend.devices.nvidia.visible import ORDER, VISIBLE


class GpuProblem(NamedTuple):
    found: str
    remedy: str
    """A sentence."""
    minor: bool = False
    """Nothing is missing for it."""

    @property
    def sentence(self) -> str:
        return f"{self.found}. {self.remedy}"


class UnreadableError(Exception):
    """NVML gave no reading."""

    def __init__(self, problem: GpuProblem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


_NOT_SUPPORTED, _NO_PERMISSION, _NOT_LOADED, _NO_LIBRARY, _NO_FUNCTION, _MISMATCH = 3, 4, 9, 12, 13, 18
"""NVML's numbers of errors."""

_AGAIN = "A server that has found its GPUs at the start tries again by itself."

_FAILURES = {
    _NOT_SUPPORTED: GpuProblem(
        "NVIDIA's driver does not support the reading of its GPUs here (NVML: not supported)",
        "Update the driver; in a virtual machine, ask its host for a vGPU or a whole card.",
    ),
    _NO_PERMISSION: GpuProblem(
        "this server may not read NVIDIA's GPUs (NVML: no permission)",
        "Let its user read and write /dev/nvidiactl and /dev/nvidia0, /dev/nvidia1, …, or start its container with the "
        "GPUs (`docker run --gpus all`).",
    ),
    _NOT_LOADED: GpuProblem(
        f"NVIDIA's driver is not loaded, though its library {NAME} is here",
        "Run `modprobe nvidia`, or start the container with the GPUs (`docker run --gpus all`); where there are none, "
        "remove the library, or set accelerator=none.",
    ),
    _NO_LIBRARY: GpuProblem(
        f"NVIDIA's library {NAME} cannot be loaded",
        "Install the driver's libraries for this processor, or mount those of the host into the container.",
    ),
    _NO_FUNCTION: GpuProblem(
        "NVIDIA's driver is too old: its library lacks a function that is needed", "Update the driver."
    ),
    _MISMATCH: GpuProblem(
        f"NVIDIA's driver in the kernel and its library {NAME} are of different versions",
        "Restart the machine after an update of the driver; in a container, start the container anew.",
    ),
}


def failure(code: int, message: str) -> GpuProblem:
    """`code` and `message` of an error of NVML."""
    other = GpuProblem(
        f"NVIDIA's GPUs cannot be read (NVML error {code}: {message})", "Look at what `nvidia-smi` and `dmesg` say."
    )
    return _FAILURES.get(code, other)


def no_library(driver: Path) -> GpuProblem:
    return GpuProblem(
        f"NVIDIA's driver is here ({driver}), but not its library {NAME}, by which GPUs are read",
        "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the driver's libraries.",
    )


def hangs(limit: float) -> GpuProblem:
    return GpuProblem(
        f"NVIDIA's driver has not answered within {limit:g} s, and the process that reads its GPUs was ended",
        f"Look at `dmesg`; where `nvidia-smi` hangs as well, restart the machine. {_AGAIN}",
    )


def still_hangs(pid: int) -> GpuProblem:
    return GpuProblem(
        f"NVIDIA's driver hangs: process {pid}, which read its GPUs, was killed and has not ended",
        "Look at `dmesg`, and restart the machine. No GPU is read before the process has ended.",
    )


def ended(code: int | None) -> GpuProblem:
    return GpuProblem(
        f"the process that reads NVIDIA's GPUs ended with code {code}",
        f"The log has its last words. {_AGAIN}",
    )


ORDER_UNKNOWN = GpuProblem(
    f"{VISIBLE} has numbers, the GPUs differ, and only CUDA knows their order by speed, its default: the numbers are "
    "taken in the order of the PCI bus",
    f"Set {ORDER}=PCI_BUS_ID, or name the GPUs by UUID (`nvidia-smi -L`).",
    minor=True,
)


def names_none(listed: str, readable: int) -> GpuProblem:
    """`listed`: the inherited list; `readable`: how many devices there are."""
    return GpuProblem(
        f"{VISIBLE}={listed} names none of the GPUs that can be read here ({readable}), so none is used",
        "Name them as `nvidia-smi -L` does, by number (from 0, also in a container) or by UUID, or unset the variable.",
    )


def no_entry(listed: str) -> GpuProblem:
    """`listed`: the inherited list, of which CUDA takes no entry."""
    return GpuProblem(
        f"{VISIBLE}={listed} leaves no GPU: CUDA takes nothing from a list that has a GPU twice, or begins with no "
        "name of one",
        "Name each GPU once, by number or by UUID (`nvidia-smi -L`), or unset the variable.",
    )


def not_started(error: OSError) -> GpuProblem:
    return GpuProblem(
        f"the process that reads NVIDIA's GPUs cannot be started ({error})",
        f"Let the server have more processes and memory. {_AGAIN}",
    )


def problems_of(inventory: Inventory) -> Iterator[GpuProblem]:
    """Cards that the server must leave out."""
    for gpu in inventory.gpus:
        if gpu.instances == ():
            yield GpuProblem(
                f"GPU {gpu.index} ({gpu.uuid}) is in MIG mode and has no instance, so no model can run on it",
                f"Make one (`nvidia-smi mig -i {gpu.index} -cgi PROFILE -C`), or leave MIG "
                f"(`nvidia-smi -i {gpu.index} -mig 0`).",
            )
    if inventory.unreadable:
        every = len(inventory.gpus) + len(inventory.unreadable)
        names = ", ".join(f"GPU {one.index} ({one.reason})" for one in inventory.unreadable)
        yield GpuProblem(
            f"GPUs that cannot be read are left out, {len(inventory.unreadable)} of {every}: {names}",
            "Look at what `nvidia-smi` and `dmesg` say" + ("; models run on the others." if inventory.gpus else "."),
        )
