"""`python -m msx_frontend.supervision [OPTIONS] -- msx-serve ARGUMENTS`, but for `-m` (see `module_command`)

Becomes the supervisor of this server. By `msx-serve` `ps` and `pgrep -f` find it.
"""

import argparse
import sys

from msx_frontend.supervision.replacement import Passed
from msx_frontend.supervision.supervisor import FrontendSupervisor, made_supervisor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--descriptors", type=int, help="soft limit of a program before this one, which has raised it")
    parser.add_argument("--state", type=int, help="descriptor with the state that another program of it has left")
    parser.add_argument("--before", default="", help="interpreter of that program")
    parser.add_argument("--refused", default="", help="why another program has not gone on with it")
    end = sys.argv.index("--")
    options, _ = parser.parse_known_args(sys.argv[1:end])  # another release may have more of them
    supervisor = made_supervisor(sys.argv[end + 2 :], options.descriptors)
    if options.state is not None:
        _go_on(supervisor, options)
    return supervisor.run()


def _go_on(supervisor: FrontendSupervisor, options: argparse.Namespace) -> None:
    """Have the state of the program before this one, or become that one again."""
    try:
        supervisor.go_on(Passed(options.state), options.refused)
    except Exception as error:
        if not options.before:
            raise
        reason = f"{sys.executable} does not go on with the server as it runs: {error or type(error).__name__}"
        raise supervisor.replacement.go_back(options.before, options.state, reason) from error


if __name__ == "__main__":
    sys.exit(main())
