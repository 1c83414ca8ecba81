"""The ports of this node for the collectives of a group: each agent has a block that no other one has."""

import socket
from collections.abc import Mapping
from itertools import count

from msx_frontend.plugins.accelerators import Accelerator, NoMorePortsError


class CollectivePorts:
    """Taken when it is made, until `close` or the end of this process. Raises OSError when none are left.

    Agents do not know of each other, and may be of several servers and users. A name in the abstract namespace of
    Unix sockets stands for a block: it counts in the same network namespace as the ports, and leaves nothing behind.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        """`accelerator` knows what the operator has chosen for this node."""
        self.environment: Mapping[str, str] = {}
        self._holds: socket.socket | None = None
        for block in count():  # ends with the last block
            try:
                ports = accelerator.collective_ports(block, shared=False)
            except NoMorePortsError as error:
                raise OSError(f"{error}; all are taken") from error
            if ports is None:
                continue
            if not ports:
                return  # the operator has chosen for all groups
            if (holds := _held(next(iter(ports.values())))) is not None:
                self.environment, self._holds = ports, holds
                return

    def close(self) -> None:
        """Idempotent."""
        if self._holds is not None:
            self._holds.close()
            self._holds = None


def _held(first: str) -> socket.socket | None:
    """None when another agent has the block from this port on."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(f"\0msx-collective-ports-{first}")
    except OSError:
        made.close()
        return None
    return made
