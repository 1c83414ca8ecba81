"""The plan by which rank 0 of a group leads the other ranks, and what each rank reports after a call."""

from msx_protocol.message import WireMessage
from msx_protocol.requests import RequestHead


class PlanCall(WireMessage, tag=40):
    """Call the handler with this batch. `warmup`: the inputs are the rank's own examples, by their ids."""

    call: int
    requests: list[RequestHead]
    cancelled: list[int]
    warmup: bool = False


class PlanStep(WireMessage, tag=41):
    """Ask the generator of this call for more, or not; these requests were cancelled meanwhile.

    Rank 0 sends `go` False also after its own generator has ended, for a generator that would go on elsewhere.
    """

    call: int
    go: bool
    cancelled: list[int]


class PlanEnd(WireMessage, tag=42):
    """No more calls will come: close the handler, exit with 0."""


class PlanMessage(WireMessage, tag=43):
    """Call the handler's `follow` with the body: a message of rank 0's handler, which leads by itself."""

    call: int


class CallDone(WireMessage, tag=26):
    """Sent by each rank of a group after each handler call: values that must be equal on all ranks.

    `steps` counts a generator's continuations; `collectives` are the SDK's counts by name since the start.
    """

    call: int
    requests: list[int]
    steps: int
    collectives: dict[str, int]
    error: str = ""
