"""The one server of this process: it is started by the first call that needs it, and may be started again."""

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from .console import warn
from .server_process import ServerProcess
from .signals import SIGNALS


class ScriptServer:
    """May be used from any thread; signals are looked after where the first start call is one of the main thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: ServerProcess | None = None
        self._before: dict[int, Any] = {}
        """The script's own handlers of signals."""
        self._failed = self._registered = False
        self._most_enqueued: int | None = None
        self.signalled = False
        """It stops because of a signal."""

    @property
    def running(self) -> ServerProcess | None:
        process = self._process
        return None if process is None or process.stopping else process

    def started(self) -> ServerProcess:
        """Raises OSError when it cannot be started."""
        with self._lock:
            if self._process is not None and self._process.stopping:
                self._process.wait()
            if self._process is None:
                self._failed = self.signalled = False
                self._process = ServerProcess(self._process_ended)
                self._take_signals()
                self._register()
                if self._most_enqueued is not None:
                    self._process.ask("limit", enqueued=self._most_enqueued)
            return self._process

    def set_max_enqueued_requests(self, most: int) -> None:
        """Also of servers that are started later."""
        self._most_enqueued = most
        if self.running is not None:
            self.running.ask("limit", enqueued=most)

    def stop(self) -> None:
        """Returns when nothing of it is left."""
        process = self._process
        if process is not None:
            process.end()
            process.wait()
        self._give_signals_back()

    def forget(self) -> None:
        """Forget the server in a child of the script, which signals end as they would without one."""
        if self._process is not None:
            self._process.forget()
        self._give_signals_back()
        self.__init__()  # type: ignore[misc]  # locks of the parent may be held
        self._registered = True

    def _process_ended(self, process: ServerProcess) -> None:
        if not process.stopping and not process.told:
            self._failed = True
            warn(f"Serving server begin to exit: {process.reason or _UNEXPECTED}")
        process.stopping = True
        if self._process is process:
            self._process = None

    def _take_signals(self) -> None:
        if threading.current_thread() is threading.main_thread() and not self._before:
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}

    def _give_signals_back(self) -> None:
        """Only those that nobody else has taken meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, before in self._before.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, before)
        self._before = {}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The script itself ends, too: where it has ended but for its threads, it ends with the server's."""
        process, ended = self._process, _is_at_end(frame)
        before = self._before.get(number)
        if process is not None:
            if process.stopping and self.signalled:
                process.hurry()
            self.signalled = True
            warn("Serving server begin to exit: receive exit signal")
            process.end()
        if ended or (process is not None and process.is_asked):
            return
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            sys.exit(0 if process is not None else 128 + number)

    def _register(self) -> None:
        if not self._registered:
            self._registered = True
            atexit.register(self._at_exit)
            os.register_at_fork(after_in_child=self.forget)

    def _at_exit(self) -> None:
        """Tell the script's supervisor, by the exit status, that the server ended before it was told to."""
        if self._failed:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


_UNEXPECTED = "the server process has ended unexpectedly, see serving_logs/msx.log"


def _is_at_end(frame: FrameType | None) -> bool:
    """Whether the main thread only waits for the others, as Python does at the end of a script."""
    while frame is not None:
        if frame.f_code.co_name == "_shutdown" and frame.f_globals.get("__name__") == "threading":
            return True
        frame = frame.f_back
    return False


SERVER = ScriptServer()
