"""The shared memory of a stage's worker, while another frontend is to take the worker over."""

from __future__ import annotations

from socket import socket

from msx_frontend.workers.in_flight import InFlight
from msx_frontend.workers.predict_frames import PredictFrames
from msx_frontend.workers.segments.port import SegmentPort


class StageSharing:
    def __init__(self, port: SegmentPort, in_flight: InFlight, outgoing: PredictFrames) -> None:
        self.port, self._in_flight, self._outgoing = port, in_flight, outgoing
        self._last = 0
        """Number of the last request whose reply may refer to shared memory, once others must not."""

    def end(self) -> None:
        """Replies of requests that are sent from now on travel in frames, and refer to no shared memory."""
        if not self._outgoing.in_frames:
            self._outgoing.flush()
            self._outgoing.in_frames, self._last = True, self._in_flight.number

    @property
    def in_use(self) -> bool:
        """The worker may read shared memory, or refer to it in a reply."""
        lends = self.port.may_lend and any(number <= self._last for number in self._in_flight.open)
        return lends or not self.port.at_rest

    def leave(self) -> socket:
        """Give the socket to the caller."""
        self._outgoing.port = None
        return self.port.leave()
