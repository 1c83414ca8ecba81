"""A worker's connection to the server: requests come in, replies go out."""

import socket
from typing import NamedTuple

from msx_backend.control import CallClock
from msx_backend.open_requests import OpenRequests
from msx_backend.replies import ReplyWriter
from msx_protocol import FrameReader, ToWorker


class WorkerLink(NamedTuple):
    """`reader` may hold the begin of a frame that `sock` has brought already."""

    sock: socket.socket
    reader: FrameReader[ToWorker]
    jobs: OpenRequests
    replies: ReplyWriter
    clock: CallClock
