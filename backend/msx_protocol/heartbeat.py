"""Signs of life: the frontend asks, a thread of the worker answers while the handler works."""

from __future__ import annotations

from msx_protocol.message import Message
from msx_protocol.metrics import MetricInfo, MetricSample


class Ping(Message, tag=10):
    sequence: int


class Pong(Message, tag=30):
    """Proof of progress: handler calls and chunks so far, and for how long the current call has run (seconds).

    `collectives`, of a rank among several, is as in CallDone, and counts those that have only begun, too.
    `forms` are those of new metrics, of which there may be samples.
    """

    sequence: int
    progress: int
    busy_seconds: float
    samples: list[MetricSample]
    collectives: dict[str, int] = {}
    forms: list[MetricInfo] = []
