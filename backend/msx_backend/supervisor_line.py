"""The worker's line to the supervisor, on which it gets new sockets when another frontend takes it over."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from queue import SimpleQueue

log = logging.getLogger("msx.worker")


class SupervisorLine:
    """A frontend that crashes may leave half a frame in its sockets, so that the next one makes new ones.

    The control thread receives them; the thread that reads requests takes the new data socket once it has found the end
    of the old one, and so between two frames. A rank that reads none takes it at once.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._ends: SimpleQueue[Sequence[int]] = SimpleQueue()
        self._take: Callable[[int], None] | None = None

    def take_at_once(self, take: Callable[[int], None]) -> None:
        """Call `take` with the descriptor of each new data socket, on the control thread, instead of `next_ends`."""
        self._take = take

    def reconnect(self, control: socket.socket) -> bool:
        """Wait for the next frontend; from then on `control` is the socket to it. False when there will be none."""
        message, ends, _, _ = socket.recv_fds(self._line, 1, 3)
        if not message or len(ends) < 2:
            return False
        log.warning("another frontend takes this worker over")
        data, new_control, *segments = ends
        replace(control, new_control)
        if self._take is None:
            self._ends.put((data, *segments))
        else:
            self._take(data)
        return True

    def next_ends(self) -> Sequence[int]:
        """Descriptors of the new data socket and, for a stage's worker, of that for shared memory. They belong to the
        caller. Waits for the next frontend."""
        return self._ends.get()


def replace(sock: socket.socket, new: int) -> None:
    """Give the socket's descriptor to the new connection, so that all who have it use that. Closes `new`."""
    os.dup2(new, sock.fileno(), inheritable=False)
    os.close(new)
