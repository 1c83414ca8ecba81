"""`python -m msx_frontend.supervision --keep-groups SECONDS [--once NAME] [--always NAME] -- ARGUMENTS`

Becomes the supervisor of `msx-serve ARGUMENTS`; NAME is a variable whose value is an inherited descriptor.
"""

import argparse
import sys

from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.supervisor import FrontendSupervisor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-groups", type=float, required=True)
    parser.add_argument("--once", default="")
    parser.add_argument("--always", default="")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    restarts = Restarts(options.keep_groups)
    return FrontendSupervisor(options.arguments, restarts, once=options.once, always=options.always).run()


if __name__ == "__main__":
    sys.exit(main())
