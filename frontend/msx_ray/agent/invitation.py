"""Start arguments of an agent: where the server is, and which share is its own."""

import msgspec

from msx_ray.dial import DialTarget


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """As the holder of the bundle passes it on, from the driver's StartAgents."""

    addresses: list[str]
    port: int
    key: str
    fingerprint: str
    share: int
    node: str
    devices: list[str] = []
    resource: str = "CPU"
    """Ray's name of the devices."""

    @property
    def server(self) -> DialTarget:
        return DialTarget(self.addresses, self.port, self.fingerprint)
