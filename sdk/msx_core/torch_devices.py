"""Devices of a worker as torch calls them."""

import msgspec


class TorchDevices(msgspec.Struct, frozen=True):
    """One kind of devices: torch computes on them by its module of this name (`cuda`: `torch.cuda`)."""

    module: str
    title: str
    """Name of one device for people."""
    visible: str
    """Environment variable that names those of a process."""
    given: int = 0
    """How many of them the server has given the worker: 0 also where it knows of none."""
    simulated: bool = False
    """The given ones exist only as numbers: torch sees none of them."""
