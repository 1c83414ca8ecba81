"""Connections to ports for agents that have not said the key yet: how many there may be, by source address."""

import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Collection
from typing import Protocol

log = logging.getLogger("msx.cluster")

SILENT = 256
"""Connections that have not sent a byte: each is a descriptor and little else."""
SPEAKING = 64
"""Connections whose TLS handshake has begun."""
OF_AGENT = 2
"""Reserved connections of each kind for an agent: it opens one at a time, and one for contents beside it."""
IPV6_PREFIX = 64
"""Bits that tell one IPv6 host from another: the others are the host's own choice (RFC 4291 section 2.5.1)."""
SAY_EVERY = 60.0
"""Seconds between two log lines about one limit."""


class UnknownClient(Protocol):
    """A connection that has not said the key."""

    @property
    def address(self) -> str:
        """Its source IP address."""

    def end(self) -> None:
        """Close it now; it does not count any more."""


class SourceLimit:
    """Limit of `places` connections and the reserved ones. One too many closes the oldest of the source that has most
    above its reservation, so that a source keeps what is reserved for it, and none can take the places of all."""

    def __init__(self, places: int, kind: str) -> None:
        self.places = places
        self._kind = kind
        self._reserved: Counter[str] = Counter()
        self._sources: dict[str, dict[UnknownClient, None]] = {}
        """Each with its connections, the oldest first."""
        self._source_of: dict[UnknownClient, str] = {}
        self._said = -SAY_EVERY

    def __len__(self) -> int:
        return len(self._source_of)

    def reserve(self, addresses: Collection[str]) -> None:
        """Add places for an agent at each of the addresses; one that is named twice has two agents."""
        self._reserved.update(list(addresses) * OF_AGENT)
        self.places += len(addresses) * OF_AGENT

    def give_back(self, addresses: Collection[str]) -> None:
        """Undo one `reserve`."""
        self._reserved -= Counter(list(addresses) * OF_AGENT)
        self.places -= len(addresses) * OF_AGENT

    def enter(self, client: UnknownClient) -> None:
        """Count it, and close another one if there is no place."""
        source = client.address if client.address in self._reserved else _network(client.address)
        self._source_of[client] = source
        self._sources.setdefault(source, {})[client] = None
        if len(self) > self.places:
            self._shed()

    def leave(self, client: UnknownClient) -> None:
        """Idempotent."""
        source = self._source_of.pop(client, None)
        if source is not None:
            del self._sources[source][client]
            if not self._sources[source]:
                del self._sources[source]

    def _shed(self) -> None:
        source = max(self._sources, key=lambda one: len(self._sources[one]) - self._reserved[one])
        self._say(source)
        next(iter(self._sources[source])).end()

    def _say(self, source: str) -> None:
        if (now := time.monotonic()) - self._said >= SAY_EVERY:
            self._said = now
            log.warning(
                "%d connections to ports for agents %s, and there is room for %d: the oldest of the address that has "
                "most (now %s with %d) are closed",
                len(self),
                self._kind,
                self.places,
                source,
                len(self._sources[source]),
            )


class SourceLimits:
    """The limits of a process, which all its ports for agents share."""

    def __init__(self, silent: int = SILENT) -> None:
        self.silent = SourceLimit(silent, "have not begun a TLS handshake")
        self.speaking = SourceLimit(SPEAKING, "have not said the key")

    def reserve(self, addresses: Collection[str]) -> None:
        """See `SourceLimit.reserve`."""
        self.silent.reserve(addresses)
        self.speaking.reserve(addresses)

    def give_back(self, addresses: Collection[str]) -> None:
        """See `SourceLimit.give_back`."""
        self.silent.give_back(addresses)
        self.speaking.give_back(addresses)


def _network(address: str) -> str:
    """The address, or of IPv6 the network whose addresses one host can take."""
    if ":" not in address:
        return address
    host = int(ipaddress.IPv6Address(address.partition("%")[0]))
    return str(ipaddress.IPv6Network((host, IPV6_PREFIX), strict=False))
