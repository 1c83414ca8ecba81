"""Who uses which NPU: one-process workers share, parallel groups own.

The placement is TorchServe's (round robin, slices with a stride), except that it starts at device 0 and that no device
is given to two groups. Not thread-safe: everything happens on the server's loop.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msx_frontend.devices.npus import Npu, detect_npus
from msx_sdk.config import ModelConfig

__all__ = [
    "DeviceError",
    "DevicePool",
    "Lease",
    "ModelDevices",
    "NoDevicesError",
    "Npu",
    "UnknownDeviceError",
    "detect_npus",
]

log = logging.getLogger("msx.devices")


class DeviceError(RuntimeError):
    """Devices that a worker group cannot have."""


class NoDevicesError(DeviceError):
    """Too few are free; the message names their holders."""


class UnknownDeviceError(DeviceError):
    """`deviceIds` names a device that this server does not have."""


@dataclass(frozen=True, eq=False)
class Lease:
    """`devices` are numbers in the server's list, in its order; none for a worker on the CPU."""

    model_key: str
    devices: tuple[int, ...] = ()
    visible_devices: str | None = None
    exclusive: bool = False

    @property
    def device_id(self) -> int | None:
        """The first device, TorchServe's `gpu_id`."""
        return self.devices[0] if self.devices else None


class DevicePool:
    def __init__(self, npus: Sequence[Npu]) -> None:
        self.npus = tuple(npus)
        self._leases: list[Lease] = []
        self._shared_turn = 0
        self._turns: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return len(self.npus)

    def lease(self, model_key: str, config: ModelConfig) -> Lease:
        """What one worker group of this model needs, whichever kind it is. Raises DeviceError."""
        size = config.layout.devices
        if size == 0 or config.device_type == "cpu":
            return self.lease_shared(model_key, config)
        return self.lease_group(model_key, size, config.device_ids)

    def lease_shared(self, model_key: str, config: ModelConfig) -> Lease:
        """One device, shared with other one-process workers; none on a machine without, or for `deviceType: cpu`.

        Raises NoDevicesError when groups own all of them, and UnknownDeviceError.
        """
        if not self.npus or config.device_type == "cpu":
            return self._keep(Lease(model_key))
        candidates = self._candidates(config.device_ids)
        owned = self._held_by(exclusive=True)
        turn = self._turns[model_key] if config.device_ids else self._shared_turn
        for step in range(turn, turn + len(candidates)):
            device = candidates[step % len(candidates)]
            if device not in owned:
                self._take_turn(model_key, config, step + 1)
                return self._grant(model_key, (device,), exclusive=False)
        raise NoDevicesError(self._too_few(model_key, 1, candidates, owned.keys()))

    def lease_group(self, model_key: str, size: int, device_ids: Sequence[int] | None) -> Lease:
        """`size` devices that nobody else has; no devices on a machine without any, where the ranks use the CPU.

        Raises NoDevicesError and UnknownDeviceError.
        """
        if not self.npus:
            return self._keep(Lease(model_key, exclusive=True))
        candidates = self._candidates(device_ids)
        held = self._held_by(exclusive=True) | self._held_by(exclusive=False)
        turn = self._turns[model_key]
        for step in range(turn, turn + len(candidates) // size):
            chosen = _slice(candidates, step, size)
            if held.keys().isdisjoint(chosen):
                self._turns[model_key] = step + 1
                return self._grant(model_key, chosen, exclusive=True)
        free = [device for device in candidates if device not in held]
        if len(free) < size:
            raise NoDevicesError(self._too_few(model_key, size, candidates, held.keys()))
        return self._grant(model_key, free[:size], exclusive=True)

    def release(self, lease: Lease) -> None:
        """The group's last process is gone. May be called again."""
        if lease in self._leases:
            self._leases.remove(lease)

    def capacity(self, config: ModelConfig) -> int | None:
        """How many groups of this model there may be, whoever holds the devices just now; None: any number."""
        size = config.layout.devices
        if not self.npus or size == 0 or config.device_type == "cpu":
            return None
        return len(config.device_ids or self.npus) // size

    def forget(self, model_key: str) -> None:
        """The model is unregistered: its placement starts anew when it comes back."""
        self._turns.pop(model_key, None)

    def holders(self, device: int) -> list[str]:
        """The models on a device, one entry a lease."""
        return [lease.model_key for lease in self._leases if device in lease.devices]

    def _take_turn(self, model_key: str, config: ModelConfig, turn: int) -> None:
        if config.device_ids:
            self._turns[model_key] = turn
        else:
            self._shared_turn = turn % len(self.npus)

    def _candidates(self, device_ids: Sequence[int] | None) -> Sequence[int]:
        if not device_ids:
            return range(len(self.npus))
        if absent := [device for device in device_ids if device >= len(self.npus)]:
            raise UnknownDeviceError(
                f"deviceIds: {list(device_ids)} names device {absent[0]}, and this server has {_range(len(self.npus))}"
            )
        return device_ids

    def _held_by(self, *, exclusive: bool) -> dict[int, str]:
        return {
            device: lease.model_key
            for lease in self._leases
            if lease.exclusive is exclusive
            for device in lease.devices
        }

    def _grant(self, model_key: str, devices: Iterable[int], *, exclusive: bool) -> Lease:
        given = tuple(devices)
        ordered = tuple(sorted(given))
        if ordered != given:
            before, after = (",".join(map(str, numbers)) for numbers in (given, ordered))
            log.info(
                "%s: devices %s are given in ascending order, as the driver needs them: %s", model_key, before, after
            )
        visible = ",".join(str(self.npus[device].logic_id) for device in ordered)
        return self._keep(Lease(model_key, ordered, visible, exclusive))

    def _keep(self, lease: Lease) -> Lease:
        self._leases.append(lease)
        return lease

    def _too_few(self, model_key: str, size: int, candidates: Sequence[int], held: Iterable[int]) -> str:
        taken = sorted(set(candidates).intersection(held))
        free = len(candidates) - len(taken)
        needs = f"{model_key} needs {_count(size)} of its own" if size > 1 else f"{model_key} needs a device"
        message = f"{needs}, and {free} of {_count(len(candidates))} {'is' if free == 1 else 'are'} free"
        if not taken:
            return message
        return message + ": " + ", ".join(f"{d} is held by {_names(self.holders(d))}" for d in taken)


class ModelDevices:
    """The pool as one model version sees it."""

    def __init__(self, pool: DevicePool, model_key: str, config: ModelConfig) -> None:
        self._pool, self._key, self._config = pool, model_key, config

    def lease(self) -> Lease:
        """For one more worker group. Raises DeviceError."""
        return self._pool.lease(self._key, self._config)

    def release(self, lease: Lease) -> None:
        self._pool.release(lease)

    def forget(self) -> None:
        self._pool.forget(self._key)

    @property
    def capacity(self) -> int | None:
        return self._pool.capacity(self._config)

    @property
    def default_workers(self) -> int:
        """TorchServe's: as many as there are devices; as many groups as fit on them."""
        if self._config.device_type == "cpu":
            return 1
        capacity = self.capacity
        return max(self._pool.count if capacity is None else capacity, 1)


def _slice(candidates: Sequence[int], step: int, size: int) -> Sequence[int]:
    start = step % (len(candidates) // size) * size
    return candidates[start : start + size]


def _names(holders: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(holders))


def _count(number: int) -> str:
    return f"{number} device" + ("" if number == 1 else "s")


def _range(number: int) -> str:
    return "device 0 only" if number == 1 else f"devices 0 to {number - 1}"
