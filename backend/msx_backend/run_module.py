"""`python -m msx_backend.run_module PARENT MODULE [ARGUMENT…]`: `python -m MODULE`, which ends with its parent."""

import os
import runpy
import signal
import sys

from msx_core.orphan import die_with_parent


def main() -> None:
    _, parent, module, *arguments = sys.argv
    signal.signal(signal.SIGTERM, _end_all)
    die_with_parent(int(parent), signal.SIGTERM)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_all(number: int, frame: object) -> None:
    """Ends the module and the processes that it has started: it leads a process group of its own."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
