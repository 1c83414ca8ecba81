"""Waits for requests that may still join the next batch while `inference` of the running one leaves time."""

import os
import select
import socket

from msx_backend.overlap.pace import Pace


class Gathering:
    """Called on the thread that reads; the main thread calls `device_is_free`."""

    def __init__(self, sock: socket.socket, pace: Pace) -> None:
        self._pace = pace
        self._waits = False
        self._sock_fd = sock.fileno()
        self._free_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._either = _polls(self._sock_fd, self._free_fd)
        self._requests = _polls(self._sock_fd)
        """Polled by the main thread alone: Python refuses two threads that poll one object."""

    def more_come(self) -> bool:
        """Wait for more requests. False when the batch has to begin without them."""
        self._waits = True
        try:
            return self._wait()
        finally:
            self._waits = False

    def _wait(self) -> bool:
        """Poll for whole milliseconds, as it takes no others: the last one is not waited for."""
        while (milliseconds := int(self._pace.seconds_left() * 1000)) >= 1:
            ready = [fd for fd, _ in self._either.poll(milliseconds)]
            if self._free_fd in ready:
                os.eventfd_read(self._free_fd)  # it may be of an earlier wait: the pace knows
            elif self._sock_fd in ready:
                return True
        return False

    def more_wait(self) -> bool:
        """Whether requests wait in the socket, or for others."""
        return self._waits or bool(self._requests.poll(0))

    def device_is_free(self) -> None:
        """Nothing runs any more, and no batch is ready: begin with what is there."""
        if self._waits:
            os.eventfd_write(self._free_fd, 1)

    def close(self) -> None:
        os.close(self._free_fd)


def _polls(*descriptors: int) -> select.poll:
    polls = select.poll()  # not select(): an inherited descriptor may be beyond its 1024
    for fd in descriptors:
        polls.register(fd, select.POLLIN)
    return polls
