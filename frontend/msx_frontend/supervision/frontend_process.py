"""The frontend, as the supervisor's child."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

FRONTEND_FD = "MSX_SUPERVISOR_FD"
"""Variable with the descriptor of a frontend's connection to its supervisor."""
COMMAND = "msx_frontend.cli.main"


class FrontendProcess:
    """One frontend and the connection to it. It has a session of its own, so that Ctrl-C reaches it once: through the
    supervisor."""

    def __init__(self, arguments: Sequence[str], handed_on: Sequence[int] = ()) -> None:
        """`handed_on`: descriptors of the command that has started the server. Raises OSError."""
        self.connection, end = socket.socketpair()
        self.started = False
        with end:
            self.process = subprocess.Popen(
                [sys.executable, "-m", COMMAND, *arguments],
                env={**os.environ, FRONTEND_FD: str(end.fileno())},
                pass_fds=[end.fileno(), *handed_on],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        """Hand a signal on."""
        self.process.send_signal(number)

    def exit_code(self) -> int | None:
        """None while it runs; 128 and the signal's number if a signal ended it, as shells do."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def close(self) -> None:
        self.connection.close()
