"""A thread that sends replies which were held for too long."""

import threading
import time

from msx_backend.replies import ReplyWriter

LATE = 0.002
"""Seconds without a write after which held replies are sent: the current call takes longer than the calls before."""


class LateReplies(threading.Thread):
    """Watches the writer while it holds replies, and sleeps otherwise."""

    def __init__(self, replies: ReplyWriter) -> None:
        super().__init__(name="late-replies", daemon=True)
        self._replies = replies
        self._wanted = threading.Event()
        self.watching = False

    def watch(self) -> None:
        """Called when a call begins while replies are held."""
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
