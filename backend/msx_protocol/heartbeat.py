"""Heartbeats: the server asks, and a thread of the worker answers while the handler works."""

from msx_protocol.message import WireMessage
from msx_protocol.metrics import MetricInfo, MetricSample

BEFORE = 0
"""Sequence of all pings of a frontend that takes the worker over, until that has told what it has loaded."""
FIRST = 1
"""Sequence of the first ping of a frontend, which knows none of the worker's gauges."""


class Ping(WireMessage, tag=10):
    """`sequence`: FIRST, and one more with each ping; BEFORE these, BEFORE."""

    sequence: int


class Pong(WireMessage, tag=30):
    """Proof of progress: the number of handler calls and chunks so far, and the seconds that the current call has run.

    `collectives`, in a group of ranks, is as in CallDone, but includes those that have only begun. `forms` describe new
    metrics, of which samples may follow.
    """

    sequence: int
    progress: int
    busy_seconds: float
    samples: list[MetricSample]
    collectives: dict[str, int] = {}
    forms: list[MetricInfo] = []
