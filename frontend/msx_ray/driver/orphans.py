"""Reservations that dead servers have left in Ray: found and removed by the drivers of the servers that live.

What has a holder ends with its agent. Without one, a reservation that waits in Ray's line would take the next devices
that become free, for nobody. Each driver counts in Ray's own store, so that a server whose driver is away for a while
is told from one that is gone, without comparing clocks.
"""

import secrets
from typing import NamedTuple

import ray
from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_get, _internal_kv_put
from ray.util import get_placement_group, placement_group_table, remove_placement_group

EVERY = 30.0
"""Seconds between two counts of a driver, and between two looks."""

GONE = 600.0
"""Seconds without a count after which a server is gone: a head may take so long to come back."""

SPACE = "msx"


class Beat(NamedTuple):
    counted: bytes
    since: float
    """When this driver has seen it first, by its own monotonic clock."""


class Orphans:
    """`look` is called again and again, and does something every half minute. Raises Ray's errors."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._driver = secrets.token_hex(4)
        """So that the count of a driver that was started again is another one."""
        self._count = 0
        self._next = 0.0
        self._beats: dict[str, Beat] = {}

    def look(self, now: float) -> list[str]:
        """The names of the reservations that were removed; `now` is monotonic, in seconds."""
        if now < self._next:
            return []
        self._next = now + EVERY
        self._count += 1
        _internal_kv_put(_key(self._server), f"{self._driver}-{self._count}".encode(), namespace=SPACE)
        return self._removed(now)

    def close(self) -> None:
        """The server ends as it should: what it leaves nobody waits for."""
        _internal_kv_del(_key(self._server), namespace=SPACE)

    def _removed(self, now: float) -> list[str]:
        held = {one["name"].rpartition(":")[0] for one in ray.util.list_named_actors(all_namespaces=True)}
        left = [name for name in _reservations() if name not in held and server_of(name) != self._server]
        waiting = {server_of(name) for name in left}
        gone = {server for server in waiting if self._is_gone(server, now)}
        self._beats = {server: beat for server, beat in self._beats.items() if server in waiting}
        return [name for name in left if server_of(name) in gone and _remove(name)]

    def _is_gone(self, server: str, now: float) -> bool:
        count = _internal_kv_get(_key(server), namespace=SPACE) or b""
        beat = self._beats.get(server)
        if beat is None or beat.counted != count:
            self._beats[server] = Beat(count, now)
            return False
        return now - beat.since > GONE


def _remove(name: str) -> bool:
    """False where it is gone already: another server's driver was faster."""
    try:
        remove_placement_group(get_placement_group(name))
    except ValueError:
        return False
    return True


def server_of(reservation: str) -> str:
    """`msx-<server>-<number>`."""
    return reservation.split("-")[1]


def _reservations() -> list[str]:
    table = placement_group_table().values()
    names = [str(one["name"]) for one in table if one["state"] != "REMOVED"]
    return [name for name in names if name.startswith("msx-") and name.count("-") == 2]


def _key(server: str) -> bytes:
    return f"beat-{server}".encode()
