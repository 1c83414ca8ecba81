"""The report of each rank after each call, which the server compares."""

import sys

from msx_backend.replies import ReplyWriter, utf8
from msx_core.failures import summary
from msx_protocol import CallDone
from msx_sdk.request import InferenceRequest

COLLECTIVES = "msx_sdk.mindspore.collectives"


class CallReport:
    """Counts the steps of one call."""

    def __init__(self, call: int, requests: list[InferenceRequest]) -> None:
        self.call = call
        self.requests = requests
        self.steps = 0

    def send(self, replies: ReplyWriter, error: BaseException | None, counted: dict[str, int] | None = None) -> None:
        """`counted`: the counts of this call, if the rank has begun the next one already."""
        numbers = [request.number for request in self.requests]
        text = "" if error is None else utf8(summary(error))
        replies.send(CallDone(self.call, numbers, self.steps, collectives() if counted is None else counted, text))


def collectives() -> dict[str, int]:
    """The SDK's counts of collectives, if the handler uses them."""
    module = sys.modules.get(COLLECTIVES)
    return dict(module.counts()) if module is not None else {}
