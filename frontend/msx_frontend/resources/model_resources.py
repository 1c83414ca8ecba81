"""The server's resources as one model version sees them."""

from msx_core.config import ModelConfig
from msx_frontend.resources.claims import Claim, Resources
from msx_frontend.resources.starts import Sibling
from msx_frontend.resources.supply import UnhealthyDevice


class ModelResources:
    """See `VersionSupply`."""

    def __init__(self, resources: Resources, model_key: str, config: ModelConfig) -> None:
        self._resources, self._devices = resources, resources.devices
        self._key, self._config = model_key, config

    def claim(self, sibling: Sibling) -> Claim:
        """A claim for one more worker group. Raises DeviceError when it could never be satisfied."""
        return self._resources.claim(self._key, self._config, sibling)

    def check(self, workers: int) -> None:
        """Raises DeviceError or TooManyProcessesError when so many workers could never start, also without others."""
        if workers:
            self._devices.check(self._key, self._config)
            fit = min(workers, self.capacity or workers)
            self._resources.processes.check(self._key, fit, self._config.layout.ranks)

    def forget(self) -> None:
        """Forget an unregistered model: its placement starts anew when it is registered again."""
        self._devices.forget(self._key)

    @property
    def capacity(self) -> int | None:
        return self._devices.capacity(self._config)

    def room(self, since: float) -> int | None:
        return self._devices.room(self._key, self._config, since)

    @property
    def has_devices(self) -> bool:
        return self._devices.serves(self._config)

    @property
    def device_type(self) -> str:
        """Kind of device that it runs on: the accelerator's kind, or "cpu"."""
        return self._devices.kind(self._config)

    @property
    def unhealthy_devices(self) -> list[UnhealthyDevice]:
        """The unhealthy ones of the devices that it may have."""
        unhealthy = self._devices.unhealthy(self._config)
        return [UnhealthyDevice(number, self._devices.devices[number].id, word) for number, word in unhealthy.items()]

    @property
    def default_workers(self) -> int:
        """TorchServe's rule, as far as devices and processes go."""
        return min(self._devices.default_workers(self._config), self._most)

    @property
    def default_most(self) -> int:
        """So many on each device of the default ones."""
        each = (self._config.workers_per_device or 1) if self.has_devices else 1
        return min(self._devices.default_workers(self._config) * each, self._most)

    @property
    def _most(self) -> int:
        """As far as processes go, but at least one."""
        return max(self._resources.processes.limit // self._config.layout.ranks, 1)
