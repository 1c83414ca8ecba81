"""Frames that cost us something and bring their sender nothing: how many of them a peer may send."""

import time
from collections.abc import Callable

from msx_net.http2.errors import ConnectionFault, ErrorCode

FRAMES = (10_000, 1_000)
"""Frames at once, and each second: PING, PRIORITY, WINDOW_UPDATE, empty DATA, unknown frames, and what comes for
streams that are gone."""

SETTINGS = (100, 10)
"""Frames at once, and each second: each may change the windows of all streams, and has to be answered
(CVE-2019-9515)."""

RESETS = (2_000, 500)
"""Resets at once, and each second: requests that are given up or that make us give them up (CVE-2023-44487,
CVE-2025-8671)."""

_PER_WORK = 4
"""Frames that each request and each frame of an answer allows in addition."""


class Budget:
    """Raises ConnectionFault from `spend` when nothing is left; the clock is asked only then."""

    __slots__ = ("_burst", "_clock", "_left", "_rate", "_since", "_what", "_work", "_worked")

    def __init__(
        self, what: str, burst: int, rate: int, work: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._burst = burst
        self._rate = rate
        self._work = work
        self._clock = clock
        self._left = burst
        self._worked, self._since = work(), clock()

    def spend(self) -> None:
        if self._left <= 0:
            self._refill()
        self._left -= 1

    def _refill(self) -> None:
        now, work = self._clock(), self._work()
        earned = int((now - self._since) * self._rate) + (work - self._worked)
        if earned < 1:
            text = f"Too many {self._what}: more than {self._burst}, and then {self._rate} a second. Send fewer."
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, text)
        self._left, self._since, self._worked = min(earned, self._burst), now, work


class Flood:
    """The budgets of one connection. `work` counts what was done for the peer."""

    __slots__ = ("frame", "reset", "settings")

    def __init__(self, work: Callable[[], int]) -> None:
        self.frame = Budget("frames that carry nothing", *FRAMES, lambda: _PER_WORK * work()).spend
        self.settings = Budget("SETTINGS", *SETTINGS, lambda: 0).spend
        self.reset = Budget("requests that are given up", *RESETS, lambda: 0).spend
