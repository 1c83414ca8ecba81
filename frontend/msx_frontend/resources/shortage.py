"""Resource that a worker group lacks before it can start, although nothing has failed."""

from typing import Literal, NamedTuple

Resource = Literal["cluster", "devices", "memory", "ports", "processes"]


class Shortage(NamedTuple):
    """`reason` says who needs how much of it, and who has it: a sentence without its full stop."""

    resource: Resource
    reason: str
