"""`python -m msx_frontend.supervision [OPTIONS] -- msx-serve ARGUMENTS`

Becomes the supervisor of this server. `--frontend PID:FD` is a child of this process already, and the connection to it.
By `msx-serve` `ps` and `pgrep -f` find it.
"""

import argparse
import socket
import sys

from msx_frontend.supervision.descriptors import raise_limit
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.process import InheritedProcess
from msx_frontend.supervision.replacement import Passed, Replacement
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.supervisor import FrontendSupervisor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frontend", default="")
    parser.add_argument("--descriptors", type=int, help="soft limit of a program before this one, which has raised it")
    parser.add_argument("--state", type=int, help="descriptor with the state that another program of it has left")
    parser.add_argument("--before", default="", help="interpreter of that program")
    parser.add_argument("--refused", default="", help="why another program has not gone on with it")
    end = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:end])
    soft = raise_limit() if options.descriptors is None else options.descriptors
    replacement, command = Replacement([f"--descriptors={soft}", *sys.argv[end:]]), FrontendCommand(sys.argv[end + 2 :])
    supervisor = FrontendSupervisor(command, Restarts(), replacement, soft)
    if options.state is not None:
        _go_on(supervisor, replacement, options)
    return supervisor.run(_inherited(options.frontend))


def _inherited(option: str) -> FrontendProcess | None:
    if not option:
        return None
    pid, fd = map(int, option.split(":"))
    return FrontendProcess(InheritedProcess(pid), socket.socket(fileno=fd))


def _go_on(supervisor: FrontendSupervisor, replacement: Replacement, options: argparse.Namespace) -> None:
    """Have the state of the program before this one, or become that one again."""
    try:
        supervisor.go_on(Passed(options.state), options.refused)
    except Exception as error:
        if not options.before:
            raise
        reason = f"{sys.executable} does not go on with the server as it runs: {error or type(error).__name__}"
        raise replacement.go_back(options.before, options.state, reason) from error


if __name__ == "__main__":
    sys.exit(main())
