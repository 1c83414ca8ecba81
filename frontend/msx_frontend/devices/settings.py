"""Keys of config.properties that say which devices the server uses, and why their values cannot be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msx_core.start_errors import StartError
from msx_frontend.devices.accelerator import Accelerator

AUTO = "auto"
"""Value of `accelerator` for the first kind that has devices."""


@dataclass(frozen=True)
class DeviceSettings:
    """`limit` is `number_of_npu`, which is `number_of_gpu`: the most devices to use; None for all. `simulate` is
    `simulate_devices`: so many devices that exist only as numbers, where no others are found."""

    accelerator: str = AUTO
    limit: int | None = None
    simulate: int = 0

    @property
    def simulated(self) -> int:
        return self.simulate if self.limit is None else min(self.simulate, self.limit)


class AcceleratorError(StartError):
    """`accelerator` names devices that cannot be used."""


class UnknownAcceleratorError(AcceleratorError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"accelerator: {name!r} is not one of {', '.join(known)}")


class NoDevicesError(AcceleratorError):
    """There are none of the kind that `accelerator` names: models would compute on the CPU without a word."""

    def __init__(self, accelerator: type[Accelerator], why: Sequence[str]) -> None:
        """`why`: what is known of it, in sentences without their full stops."""
        known = f" ({'; '.join(why)})" if why else ""
        super().__init__(
            f"accelerator={accelerator.name}: no {accelerator.title} was found{known}: leave out the key to serve on "
            f"what there is; simulate_devices=N makes N {accelerator.title}s that exist only as numbers"
        )
