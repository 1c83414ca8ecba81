"""A device that is a clock: a call waits in C with the interpreter free, as one of CUDA's or CANN's does.

Nothing here is MSX's, so that any server can run the same.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Sequence
from functools import partial

from measured_calls import BARE, FIGURES, MeasuredCalls  # type: ignore[import-not-found]  # it lies beside this file


class DeviceClock:
    def __init__(self, device: float, python: float, bare: float = BARE) -> None:
        """`device`: milliseconds of a call. `python`: milliseconds of processor time before and behind it, together.
        `bare`: seconds of the loop, at least."""
        self._call = partial(ctypes.CDLL(None).usleep, round(device * 1000))
        self._half = python / 2000
        self._measured = MeasuredCalls(bare)

    def compute(self) -> None:
        """Half of the Python, once a batch."""
        until = time.thread_time() + self._half
        while time.thread_time() < until:
            pass

    def run(self, bodies: Sequence[bytes]) -> Sequence[bytes]:
        """Call the device for this batch. A question for the figures may be among what a load has left behind."""
        if FIGURES in bodies:
            figures = FIGURES + json.dumps(self._measured.figures(self._call)).encode()
            return [figures if body == FIGURES else body for body in bodies]
        self._measured.run(len(bodies), self._call)
        return bodies
