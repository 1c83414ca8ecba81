"""The errors that would end the start, and its warnings, by reading all that it reads."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from msx_core.start_errors import StartError
from msx_frontend.assembly.start_inputs import INPUTS, StartInput
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.findings import Finding, failed, ok, warning

OWN = "msx"
"""The logger above all of the server's."""


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


def check_inputs(machine: Machine) -> Iterator[Finding]:
    for one in INPUTS:
        yield from _check(one, machine)


def _check(one: StartInput, machine: Machine) -> Iterator[Finding]:
    with _logged() as records:
        try:
            found = one.read(machine.config, machine.env)
        except (StartError, OSError) as error:
            yield failed(one.name, str(error), "The start ends with this sentence.")
            return
    for record in records:
        told = failed if record.levelno >= logging.ERROR else warning
        yield told(one.name, record.getMessage(), "The server starts, and says so in its log.")
    if found and not records:
        yield ok(one.name, found)


@contextmanager
def _logged() -> Iterator[list[logging.LogRecord]]:
    """Warnings of the server's loggers, which are not written meanwhile."""
    logger, handler = logging.getLogger(OWN), _Records()
    before = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
