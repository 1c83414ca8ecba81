"""Exit of a rank after the end of another rank of its group."""

import logging
import os
import time
from typing import NoReturn

log = logging.getLogger("msx.worker")

GRACE = 5.0
"""Seconds in which the server, which watches all ranks, ends this one."""


def wait_for_the_end(gone: str) -> NoReturn:
    """Waits to be ended, so that the server hears of the failure from the rank that caused it. An error of this rank
    would reach the client first as the handler's, and its exit would be taken for the cause."""
    log.info("the plan socket of %s is closed: this rank waits to be ended", gone)
    wait_for_the_server()


def wait_for_the_server() -> NoReturn:
    """Waits to be ended by the server, which knows the reason."""
    time.sleep(GRACE)
    os._exit(1)
