"""Reading CUDA_VISIBLE_DEVICES as CUDA reads it.

The list ends at the first entry that is not valid; one that is there twice leaves no device at all. The first entry
says how all name their devices: by number, by the beginning of a UUID (`GPU-8932f9`), or by MIG instance (`MIG-…`; old
drivers have the form `MIG-GPU-…/GPU INSTANCE/COMPUTE INSTANCE`). Sources: CUDA's programming guide, "Environment
variables"; for doubles, numbers with a tail and mixed lists `torch.cuda`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msx_frontend.devices.nvidia.messages import Gpu, Inventory

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"

NONE = ("", "-1", "none", "void", "NoDevFiles")
"""Values by which people and tools of containers give no GPU."""

_NUMBER = re.compile(r"\s*\+?(\d{1,9})")
"""As strtoul reads it: `1x` is 1. `-1` is none, and nor is a name."""
_NAME = re.compile(r"[A-Za-z0-9/-]{5,96}")
_PREFIXES = ("GPU-", "MIG-")


def entries(text: str) -> list[str]:
    """The valid beginning of the list, with plain numbers; whether the machine has such devices is not asked."""
    prefix = next(filter(text.startswith, _PREFIXES), "")
    listed = list(takewhile(bool, (_entry(part, prefix) for part in text.split(","))))
    return listed if len(set(listed)) == len(listed) else []


def visible_ids(text: str, inventory: Inventory) -> list[str]:
    """Ids of the devices that the list leaves, in its order. A card in MIG mode stands for all of its instances; one
    that cannot be read is passed over."""
    ids: list[str] = []
    for entry in entries(text):
        found = _found(entry, inventory)
        if found is None:
            break
        if not set(ids).isdisjoint(found):
            return []
        ids += found
    return ids


def order_is_unknown(text: str, order: str, gpus: Sequence[Gpu]) -> bool:
    """Whether the list has numbers of cards that differ, in CUDA's order of speed, which only CUDA knows."""
    numbers = any(entry.isdecimal() for entry in entries(text))
    return numbers and order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1


def ids_of(gpu: Gpu) -> list[str]:
    """Ids of the devices that a card is: its own, or in MIG mode those of its instances."""
    return [gpu.uuid] if gpu.instances is None else [instance.uuid for instance in gpu.instances]


def _entry(part: str, prefix: str) -> str:
    """The entry in plain form; "" where it is not valid in a list whose names begin so."""
    if prefix:
        return part if part.startswith(prefix) and _NAME.fullmatch(part) else ""
    number = _NUMBER.match(part)
    return str(int(number[1])) if number else ""


def _found(entry: str, inventory: Inventory) -> list[str] | None:
    """None where there is no such device, or more than one."""
    if entry.startswith("MIG-"):
        named = [[instance] for gpu in inventory.gpus for instance in _instances_named(entry, gpu)]
    elif entry.startswith("GPU-"):
        named = [ids_of(gpu) for gpu in inventory.gpus if gpu.uuid.startswith(entry)]
    else:
        named = [ids_of(gpu) for gpu in inventory.gpus if gpu.index == int(entry)]
        named += [[] for gpu in inventory.unreadable if gpu.index == int(entry)]
    return named[0] if len(named) == 1 else None


def _instances_named(entry: str, gpu: Gpu) -> Iterator[str]:
    for one in gpu.instances or ():
        if entry in (one.uuid, f"MIG-{gpu.uuid}/{one.gpu_instance}/{one.compute_instance}"):
            yield one.uuid
