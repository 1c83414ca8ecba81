"""`python -m msx_ray.agent`: the holder of a bundle starts it, with the invitation on standard input.

It returns at once, and leaves the agent behind as a process of its own, which Ray does not end.
"""

import argparse
import os
import sys

import msgspec
import uvloop

from msx_ray.agent.agent import Agent
from msx_ray.agent.invitation import Invitation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alive-fd", type=int, required=True, help="open as long as the agent runs")
    options = parser.parse_args()
    os.set_inheritable(options.alive_fd, False)
    invitation = msgspec.json.decode(sys.stdin.buffer.read(), type=Invitation)
    if os.fork():
        os._exit(0)
    os.setsid()
    _leave_streams()
    uvloop.run(Agent(invitation).run())


def _leave_streams() -> None:
    """Leave the standard streams of Ray's worker, which may end before this process."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


if __name__ == "__main__":
    main()
