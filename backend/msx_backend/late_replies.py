"""A thread that sends replies which would wait too long for others."""

from __future__ import annotations

import threading
import time

from msx_backend.replies import ReplyWriter

LATE = 0.002
"""Seconds without a write after which held replies are sent: a call takes longer than those before it did."""


class LateReplies(threading.Thread):
    """Looks at the writer as long as there are held replies, and costs nothing when there are none."""

    def __init__(self, replies: ReplyWriter) -> None:
        super().__init__(name="late-replies", daemon=True)
        self._replies = replies
        self._wanted = threading.Event()
        self.watching = False

    def watch(self) -> None:
        """Replies are held, and a call begins."""
        self.watching = True
        self._wanted.set()

    def run(self) -> None:
        while True:
            self._wanted.wait()
            writes = self._replies.writes
            time.sleep(LATE)
            if writes == self._replies.writes:
                self._wanted.clear()
                self.watching = False  # before the flush: what is held after it is watched anew
                self._replies.flush_now()
