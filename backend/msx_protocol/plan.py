"""The plan by which rank 0 of a group leads the other ranks, and what each rank reports after a call."""

from __future__ import annotations

from msx_protocol.message import Message
from msx_protocol.requests import RequestHead


class PlanCall(Message, tag=40):
    """Call the handler with this batch. `warmup`: the inputs are the rank's own examples, by their ids."""

    call: int
    requests: list[RequestHead]
    cancelled: list[int]
    warmup: bool = False


class PlanStep(Message, tag=41):
    """Ask the generator of this call for more, or not; these requests have been cancelled meanwhile.

    Rank 0 also says "not" after its own generator has ended, for one that would go on elsewhere.
    """

    call: int
    go: bool
    cancelled: list[int]


class PlanEnd(Message, tag=42):
    """No more calls will come: close the handler, exit with 0."""


class PlanMessage(Message, tag=43):
    """Call n is what the handler's `follow` makes of the body: the word of rank 0's handler, which leads by itself."""

    call: int


class CallDone(Message, tag=26):
    """Only in groups of several ranks, from each of them after each handler call: what must be equal on all.

    `steps` counts a generator's continuations, `collectives` those of the SDK by name, since the start.
    """

    call: int
    requests: list[int]
    steps: int
    collectives: dict[str, int]
    error: str = ""
