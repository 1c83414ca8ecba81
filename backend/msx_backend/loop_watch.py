"""Watches the event loop of an async handler."""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

log = logging.getLogger("msx.worker")

LOOP_BLOCKED_AFTER = 0.2
"""Seconds after which an async handler that blocks its loop is logged with its line."""


class LoopWatch:
    """Detects an async handler that blocks its loop: asks the loop for a call and checks whether it is made in time."""

    def __init__(
        self, ask: Callable[[Callable[[], None]], object], busy: Callable[[], bool], handler_dir: str = ""
    ) -> None:
        self._ask, self._busy, self._handler_dir = ask, busy, handler_dir
        self._asked_at: float | None = None
        self._main = threading.main_thread().ident or 0
        self._reported = False

    def tick(self) -> None:
        if self._asked_at is None:
            if self._busy():
                self._asked_at = time.monotonic()
                self._ask(self._answered)
        elif time.monotonic() - self._asked_at > LOOP_BLOCKED_AFTER and not self._reported:
            self._reported = True
            millis = LOOP_BLOCKED_AFTER * 1000
            log.warning("the handler blocks its event loop for more than %d ms at %s", millis, self._where())

    def _where(self) -> str:
        """The innermost line in the handler's own files, or in any file if none of them is on the stack."""
        stack = traceback.extract_stack(sys._current_frames().get(self._main))
        own = [line for line in stack if self._handler_dir and line.filename.startswith(self._handler_dir)]
        line = (own or stack)[-1]
        return f"{line.filename}:{line.lineno} in {line.name}"

    def _answered(self) -> None:
        self._asked_at, self._reported = None, False
