"""A worker's connection to the server: requests come in, replies go out."""

import socket
from collections.abc import Callable
from typing import NamedTuple

from msx_backend.control import CallClock
from msx_backend.open_requests import OpenRequests
from msx_backend.replies import ReplyWriter
from msx_protocol import FrameReader, ToWorker

Reconnect = Callable[[], bool]
"""Wait for another frontend at the end of the data socket. False where the worker has to end."""


def no_other_frontend() -> bool:
    return False


class WorkerLink(NamedTuple):
    """`reader` may hold the begin of a frame that `sock` has brought already."""

    sock: socket.socket
    reader: FrameReader[ToWorker]
    jobs: OpenRequests
    replies: ReplyWriter
    clock: CallClock
    reconnect: Reconnect = no_other_frontend
