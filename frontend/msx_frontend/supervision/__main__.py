"""`python -m msx_frontend.supervision --keep-groups SECONDS [OPTIONS] -- ARGUMENTS`

Becomes the supervisor of `msx-serve ARGUMENTS`. Options `--once NAME` and `--always NAME` name variables whose values
are inherited descriptors; `--frontend PID:FD` is a child of this process already, and the connection to it.
"""

import argparse
import socket
import sys

from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.process import InheritedProcess
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.supervisor import FrontendSupervisor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-groups", type=float, required=True)
    parser.add_argument("--once", default="")
    parser.add_argument("--always", default="")
    parser.add_argument("--frontend", default="")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    restarts = Restarts(options.keep_groups)
    supervisor = FrontendSupervisor(options.arguments, restarts, once=options.once, always=options.always)
    return supervisor.run(_inherited(options.frontend))


def _inherited(option: str) -> FrontendProcess | None:
    if not option:
        return None
    pid, fd = map(int, option.split(":"))
    return FrontendProcess(InheritedProcess(pid), socket.socket(fileno=fd))


if __name__ == "__main__":
    sys.exit(main())
