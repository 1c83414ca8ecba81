"""The server of a start script: a process of its own, which ends with the script."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from msx_core.private_folder import PrivateFolder

from .server_channel import Message, ServerChannel
from .signals import leave_to_main

FLAGS = "MSX_SCRIPT_FLAGS"
"""Flags of `msx-serve --script` for the server, as a JSON list."""

SCRIPT = "MSX_SCRIPT"
"""The path of the script, for the server."""

LOG_FOLDER = "serving_logs"
_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from msx_frontend.cli.main import main; main()"
"""Modules in the current folder, which is full of the user's files, are not the server's."""

_LOG_VARIABLES = ("LOG_LOCATION", "METRICS_LOCATION")
_ENDING = 120.0
"""Seconds that a server has to end, after which it is killed: longer than its own limits."""


class ServerError(RuntimeError):
    """The server could not do what it was asked. `kind` says what was wrong, `detail` in which words."""

    def __init__(self, kind: str, detail: str, more: Message | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.more = kind, detail, more or {}


class ServerProcess:
    """Started when it is made. `ended` is called once, on a thread, when the process is gone for whatever reason.

    Its thread keeps the script alive until then.
    """

    def __init__(self, ended: Callable[[ServerProcess], None]) -> None:
        self._ended = ended
        self._lock = threading.Lock()
        self._answers: SimpleQueue[Message | None] = SimpleQueue()
        self.listening: set[str] = set()
        """Its endpoints: grpc, rest."""
        self.has_servables = False
        self._folder = PrivateFolder()
        self.stopping = self.told = False
        """It was told to stop; a call of the script is told that it has ended."""
        self._at_end: list[Callable[[], None]] = []
        self.reason = ""
        """Why the server ended by itself, if it has said so."""
        ours, theirs = socket.socketpair()
        self._channel = ServerChannel(ours)
        try:
            with theirs:
                self.process = self._start(theirs.fileno())
        except BaseException:
            ours.close()
            self._folder.remove()
            raise
        self._thread = threading.Thread(target=self._supervise, name="msx-server")
        self._thread.start()

    @property
    def is_asked(self) -> bool:
        """A call waits for its answer, or is about to."""
        return self._lock.locked()

    def ask(self, what: str, **arguments: Any) -> Message:
        """Raises ServerError."""
        with self._lock:
            try:
                self._channel.send({"do": what, **arguments})
            except OSError:
                raise self._gone() from None
            answer = self._answers.get()
            if answer is None:
                self._answers.put(None)  # for whoever asks next
                raise self._gone()
        if (error := answer.get("error")) is not None:
            raise ServerError(error.get("kind", ""), error.get("detail", ""), error)
        return answer

    def end(self) -> None:
        """Begin to stop; the server finishes what it has accepted."""
        self.stopping = True
        self._channel.end()

    def hurry(self) -> None:
        """A server that stops does not wait for running requests any longer."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()

    def at_end(self, call: Callable[[], None]) -> None:
        """It is called once, on a thread, when the process is about to end or has ended."""
        self._at_end.append(call)

    def wait(self) -> None:
        """Until it is gone, and all that it had."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def forget(self) -> None:
        """Forget the process in a child of the script, whose server it is not."""
        self._channel.close()
        self._folder.close()

    def _gone(self) -> ServerError:
        return ServerError("gone", self.reason or f"the server has ended, see {LOG_FOLDER}/msx.log")

    def _start(self, fd: int) -> subprocess.Popen[bytes]:
        store, state = (self._folder.made(name) for name in ("store", "state"))
        flags = json.loads(os.environ.get(FLAGS, "[]"))
        command = [sys.executable, "-c", _PROGRAM, "--script-channel", str(fd), *flags]
        command += ["--model-store", store]
        command += [] if "--state-dir" in flags else ["--state-dir", state]
        environment = {name: value for name, value in os.environ.items() if name != FLAGS}
        environment[SCRIPT] = os.path.abspath(sys.argv[0]) if sys.argv[0] else "a Python session"
        logs = _log_folder()
        if logs is not None:
            environment |= {name: logs for name in _LOG_VARIABLES if not environment.get(name)}
        with _log_file(logs) as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                pass_fds=[fd, self._folder.descriptor],
                start_new_session=True,
                env=environment,
            )

    def _supervise(self) -> None:
        leave_to_main()
        while (message := self._channel.receive()) is not None:
            if "event" in message:
                self.reason = str(message.get("reason", ""))
            else:
                self._answers.put(message)
        self._channel.end()
        self.told = self.is_asked
        self._answers.put(None)
        for call in self._at_end:
            call()
        self._reap()
        self._channel.close()
        self._folder.remove()
        self._ended(self)

    def _reap(self) -> None:
        try:
            self.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _log_folder() -> str | None:
    """Folder beside the script's other files, as MindSpore Serving's; None where they cannot be written."""
    folder = os.path.join(os.getcwd(), LOG_FOLDER)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _log_file(folder: str | None) -> Any:
    """File for the server's stdout; errors go to the script's stderr, too."""
    if folder is None:
        return contextlib.nullcontext(sys.stderr.fileno() if _has_fd(sys.stderr) else subprocess.DEVNULL)
    return open(os.path.join(folder, "msx.log"), "wb")


def _has_fd(stream: Any) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False
