"""The frontend, as the supervisor's child."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence

from msx_core.module_command import module_command
from msx_frontend.supervision.handled import STOPPING
from msx_frontend.supervision.process import ChildProcess
from msx_frontend.supervision.program import Program
from msx_frontend.supervision.saying import follow_log
from msx_frontend.supervision.wire import VERSION

FRONTEND_FD = "MSX_SUPERVISOR_FD"
"""Variable with the descriptor of a frontend's connection to its supervisor."""
CONFIG_FD = "MSX_LAST_CONFIG_FD"
"""Variable with the descriptor of the configuration with which a frontend has come up, for one that does not read the
file: a frontend with that has not."""
COMMAND = "msx_frontend.cli.main"
PATIENCE = 10.0
"""Seconds for the rest of a message that has begun, and for an answer to be taken: the loop waits meanwhile."""


class FrontendProcess:
    """One frontend and the connection to it. It has a session of its own, so that Ctrl-C reaches it once: through the
    supervisor."""

    def __init__(self, process: ChildProcess, connection: socket.socket) -> None:
        self.process, self.connection = process, connection
        connection.settimeout(PATIENCE)
        self.started = False
        self.waits = False
        """It waits for its turn."""
        self.leaves = False
        """It leaves its workers to the next one."""
        self.program: Program | None = None
        """Program that it runs, as it has told."""
        self.spoken = VERSION
        """Version of its messages."""
        self.stop: int | None = None
        """Signal by which it is told to stop; None: by those that the supervisor gets."""
        self.states: Sequence[int] = ()
        """Versions of a supervisor's state that the supervisor of its release reads."""

    @classmethod
    def start(cls, python: str, arguments: Sequence[str], handed_on: Mapping[str, int]) -> FrontendProcess:
        """`handed_on`: descriptors that it inherits, by the variable that names each. Raises OSError."""
        follow_log()
        connection, end = socket.socketpair()
        variables = {**{name: str(fd) for name, fd in handed_on.items()}, FRONTEND_FD: str(end.fileno())}
        try:
            process = subprocess.Popen(
                [*module_command(python, COMMAND), *arguments],
                env={**os.environ, **variables},
                pass_fds=[end.fileno(), *handed_on.values()],
                start_new_session=True,
            )
        except BaseException:
            connection.close()
            raise
        finally:
            end.close()
        return cls(process, connection)

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        """Hand a signal on."""
        self.process.send_signal(self.stop if self.stop and number in STOPPING else number)

    def exit_code(self) -> int | None:
        """None while it runs; 128 and the signal's number if a signal ended it, as shells do."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def close(self) -> None:
        self.connection.close()
