"""Which worker group has which device. Free ones are given first, then those with the fewest holders.

Workers of one process share with all; groups share with them, and with other groups where both configs allow it; an
exclusive worker shares with no other. Not thread-safe: everything happens on the server's loop.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msx_core.config import ModelConfig
from msx_core.config.vllm_parallel import fewer_devices
from msx_frontend.devices.accelerator import Accelerator, Device, Links
from msx_frontend.devices.errors import DevicesHeldError, LoneDeviceError, TooFewDevicesError, UnknownDeviceError
from msx_frontend.devices.health import DeviceHealth
from msx_frontend.devices.kept_leases import KeptLease, KeptLeases
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.load import DeviceLoad
from msx_frontend.devices.placement import Rank, place_group, place_worker
from msx_frontend.devices.port_blocks import PortBlock, free_block
from msx_frontend.devices.sharing_terms import SharingTerms, terms_of
from msx_frontend.devices.topology import Topology

log = logging.getLogger("msx.devices")

Shared = Callable[[Lease, Sequence[Lease]], None]
"""Called with a new lease, and those that it shares devices with, when groups are among them, or when it is another
one of a model with `workersPerDevice`."""


class DevicePool:
    """`exclusive_groups`: no group shares (the key `exclusive_group_devices`)."""

    def __init__(
        self,
        accelerator: Accelerator,
        devices: Sequence[Device],
        links: Links = MappingProxyType({}),
        *,
        exclusive_groups: bool = False,
        shared: Shared = lambda lease, others: None,
        kept: Iterable[KeptLease] = (),
    ) -> None:
        """`devices` and `links` are the accelerator's, which it takes time to ask for. `kept`: leases of groups that a
        frontend before this one has started."""
        self._accelerator = accelerator
        self.devices = tuple(devices)
        self._alone = frozenset(number for number, device in enumerate(self.devices) if device.alone)
        self._topology = Topology(devices, links)
        self.health, self.load = DeviceHealth(self.devices), DeviceLoad(self.devices)
        self._exclusive_groups, self._shared = exclusive_groups, shared
        self._kept = KeptLeases(kept)
        self._leases: list[Lease] = []
        self._shared_turn = 0
        self._turns: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return len(self.devices)

    def kind(self, config: ModelConfig) -> str:
        """Kind of the devices that this model runs on: the accelerator's, or "cpu"."""
        return self._accelerator.kind if self.serves(config) else "cpu"

    def lease(self, model_key: str, config: ModelConfig) -> Lease:
        """Lease the devices and ports of one worker group of this model; no devices where it runs on the CPU.

        Raises DeviceError, DevicesHeldError or PortsHeldError.
        """
        terms = terms_of(config, exclusive_groups=self._exclusive_groups)
        if not self.serves(config):
            return self._keep(Lease(model_key, terms=terms, environment=self._accelerator.environment(())))
        self.check(model_key, config)
        held, unhealthy = self._held(model_key, config, terms), self.unhealthy(config)
        allowed = self._free(held)
        if (again := self._kept.take(model_key, _size(config), allowed)) is not None:
            return self._grant(model_key, again.numbers, terms, again.ports)
        if len(allowed) < _size(config):
            raise DevicesHeldError(model_key, terms, _size(config), held, unhealthy)
        ports = self._free_ports(model_key, terms)
        return self._grant(model_key, self._place(model_key, config, allowed), terms, ports)

    def check(self, model_key: str, config: ModelConfig) -> None:
        """Raises DeviceError when this server could never give what one group needs."""
        if not self.serves(config):
            return
        if any(device >= self.count for device in config.device_ids or ()):
            raise UnknownDeviceError(config.device_ids or (), self.count)
        if _size(config) > self.count:
            raise TooFewDevicesError(model_key, _size(config), self.count, fewer_devices(config))
        if len(self._candidates(config)) < _size(config):
            number = next(one for one in self._listed(config) if one in self._alone)
            raise LoneDeviceError(model_key, config.parallel_type, _size(config), number, self.devices[number].id)

    def release(self, lease: Lease) -> None:
        """Gives the devices back, after the group's last process has ended. May be called again."""
        if lease in self._leases:
            self._leases.remove(lease)

    def capacity(self, config: ModelConfig) -> int | None:
        """How many groups of this model there may be if no other model had devices; None: any number."""
        terms = terms_of(config, exclusive_groups=self._exclusive_groups)
        if not self.serves(config) or (terms.most is None and terms.may_share_with(terms)):
            return None
        return len(self._candidates(config)) // _size(config) * (terms.most or 1)

    def room(self, model_key: str, config: ModelConfig, since: float) -> int | None:
        """How many more workers of this model its load may add now; None: as many as there may be.

        With `workersPerDevice` that is one at a time on each device whose utilisation is known: the first one, or
        another one where a reading after `since` found the device below BUSY.
        """
        terms = terms_of(config, exclusive_groups=self._exclusive_groups)
        if terms.most is None or not self.serves(config):
            return None
        free = self._free(self._held(model_key, config, terms))
        if not any(map(self.load.known, free)):
            return None
        return sum(self._room_on(device, self._own(model_key, device), terms.most, since) for device in free)

    def _room_on(self, device: int, own: int, most: int, since: float) -> int:
        if not self.load.known(device):
            return most - own
        return int(not own or self.load.spare(device, since))

    def default_workers(self, config: ModelConfig) -> int:
        """As many as have room on the healthy devices that groups leave, at least one (TorchServe: one a device)."""
        if not self.serves(config):
            return 1
        healthy = [device for device in self._candidates(config) if device not in self.health.unhealthy]
        left = [device for device in healthy if not self._weigh(device)[1]]
        return max(len(left) // _size(config), 1)

    def forget(self, model_key: str) -> None:
        """Forget an unregistered model: its placement starts anew when it is registered again."""
        self._turns.pop(model_key, None)

    def holders(self, device: int) -> list[str]:
        """The models on a device, one entry a lease."""
        return [lease.model_key for lease in self._on(device)]

    def unhealthy(self, config: ModelConfig) -> dict[int, str]:
        """Unhealthy devices of those that this model may have: the driver's word, by number."""
        if not self.serves(config):
            return {}
        candidates = self._candidates(config)
        return {device: word for device, word in sorted(self.health.unhealthy.items()) if device in candidates}

    def serves(self, config: ModelConfig) -> bool:
        """Whether this model runs on devices here: not on a machine without any, nor with `deviceType: cpu`."""
        return self.count > 0 and config.device_type != "cpu"

    def _candidates(self, config: ModelConfig) -> Sequence[int]:
        """Each process of a group sees all its devices: none of them is one that a process sees alone."""
        listed = self._listed(config)
        return listed if _size(config) == 1 else [number for number in listed if number not in self._alone]

    def _listed(self, config: ModelConfig) -> Sequence[int]:
        return config.device_ids or range(self.count)

    def _on(self, device: int) -> list[Lease]:
        return [lease for lease in self._leases if device in lease.numbers]

    def _own(self, model_key: str, device: int) -> int:
        return self.holders(device).count(model_key)

    def _held(self, model_key: str, config: ModelConfig, terms: SharingTerms) -> dict[int, list[str]]:
        """Models that keep another worker of this one off, for each device that it may have."""
        return {device: self._excluding(device, model_key, terms) for device in self._candidates(config)}

    def _free(self, held: Mapping[int, Sequence[str]]) -> list[int]:
        return [device for device, holders in held.items() if not holders and device not in self.health.unhealthy]

    def _excluding(self, device: int, model_key: str, terms: SharingTerms) -> list[str]:
        if terms.most is not None and self._own(model_key, device) >= terms.most:
            return [model_key]
        return [one.model_key for one in self._on(device) if not terms.may_share_with(one.terms)]

    def _spread(self, model_key: str) -> Rank:
        """Rank for the workers of a model with `workersPerDevice`: over all devices first, then where there is time."""
        return lambda device: (self._own(model_key, device), self.load.busy(device), *self._weigh(device))

    def _weigh(self, device: int) -> tuple[int, int]:
        on = self._on(device)
        return len(on), sum(lease.terms.group for lease in on)

    def _place(self, model_key: str, config: ModelConfig, allowed: Sequence[int]) -> Sequence[int]:
        """TorchServe's turns: over the slices of each model, and for workers of one process over all models."""
        candidates, size = self._candidates(config), config.layout.devices
        rank = self._weigh if config.workers_per_device is None else self._spread(model_key)
        if size:
            placed = place_group(candidates, allowed, size, self._turns[model_key], self._weigh, self._topology)
            self._turns[model_key] = placed.turn
        elif config.device_ids:
            placed = place_worker(candidates, allowed, self._turns[model_key], rank)
            self._turns[model_key] = placed.turn
        else:
            placed = place_worker(candidates, allowed, self._shared_turn, rank)
            self._shared_turn = placed.turn % self.count
        return placed.devices

    def _grant(self, model_key: str, given: Sequence[int], terms: SharingTerms, ports: PortBlock) -> Lease:
        ordered = tuple(sorted(given))
        if ordered != tuple(given):
            before, after = (",".join(map(str, numbers)) for numbers in (given, ordered))
            log.info(
                "%s: devices %s are given in ascending order, as the driver needs them: %s", model_key, before, after
            )
        lease = self._new_lease(model_key, ordered, terms, ports)
        others = [other for other in self._leases if not set(other.numbers).isdisjoint(ordered)]
        another = terms.most is not None and any(one.model_key == model_key for one in others)
        if another or (others and any(one.terms.group for one in (lease, *others))):
            self._shared(lease, others)
        return self._keep(lease)

    def _new_lease(self, model_key: str, numbers: tuple[int, ...], terms: SharingTerms, ports: PortBlock) -> Lease:
        devices = tuple(self.devices[number] for number in numbers)
        kind = self._accelerator
        environment = {**kind.environment(devices), **ports.environment}
        return Lease(model_key, numbers, devices, terms, ports.number, environment, kind.framework, kind.torch)

    def _free_ports(self, model_key: str, terms: SharingTerms) -> PortBlock:
        taken = {lease.port_block for lease in self._leases}
        return free_block(self._accelerator, model_key, taken, shared=terms.shares) if terms.group else PortBlock()

    def _keep(self, lease: Lease) -> Lease:
        self._leases.append(lease)
        return lease


def _size(config: ModelConfig) -> int:
    """Devices of one worker group; of a worker of one process, the one that it uses."""
    return config.layout.devices or 1
