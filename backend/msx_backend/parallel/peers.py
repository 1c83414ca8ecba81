"""What a rank does when another one of its group is gone."""

from __future__ import annotations

import logging
import os
import time
from typing import NoReturn

log = logging.getLogger("msx.worker")

GRACE = 5.0
"""Seconds in which the frontend, which watches all ranks, ends this one."""


def wait_for_the_end(gone: str) -> NoReturn:
    """The group is over, and the frontend must hear it from the rank that ended it.

    An error of this rank would reach the client first, as the handler's; its exit would be taken for the cause.
    """
    log.info("the plan socket of %s is closed: this rank waits to be ended", gone)
    time.sleep(GRACE)
    os._exit(1)
