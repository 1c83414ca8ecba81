"""Decisions on the number of workers, for the log and the describe API."""

import time
from collections.abc import Sequence
from typing import Any

from msx_core.config import AutoscalingOptions
from msx_core.rfc3339 import rfc3339
from msx_frontend.devices.load import BUSY
from msx_frontend.models.autoscaling.reading import Decision, Reading
from msx_frontend.workers.replica import Replica, ReplicaState

HELD_BACK = (
    f"busy devices get no second worker: a reading must find one below {BUSY} % while all workers have work "
    "(workersPerDevice)"
)


def line(labels: tuple[str, str], options: AutoscalingOptions, reading: Reading, decision: Decision) -> str:
    """One line of the log."""
    each = "unknown" if decision.capacity is None else f"{decision.capacity:.3g}"
    return (
        f"model {' '.join(labels)}: workers {decision.before} -> {decision.wanted} (bounds {reading.least} to "
        f"{reading.most}): queue {reading.queue}, queue time {decision.queue_time:.2f} s, {_target(options)}, "
        f"in flight {reading.in_flight}, workers {reading.ready} ready and {reading.starting} starting, "
        f"{decision.rate:.3g} requests/s come and a worker answers {each}: {decision.reason}"
    )


def numbers(reading: Reading, decision: Decision) -> dict[str, Any]:
    """The last decision of the describe API."""
    return {
        "time": rfc3339(time.time(), "milliseconds"),
        "from": decision.before,
        "to": decision.wanted,
        "reason": decision.reason,
        "queue": reading.queue,
        "queueTime": round(decision.queue_time * 1000),
        "inFlight": reading.in_flight,
        "ready": reading.ready,
        "starting": reading.starting,
        "requestsPerSecond": round(decision.rate, 3),
        "requestsPerSecondAndWorker": None if decision.capacity is None else round(decision.capacity, 3),
    }


def described(
    options: AutoscalingOptions, wanted: int, kept: Sequence[Replica], last: dict[str, Any] | None, why_not_more: str
) -> dict[str, Any]:
    in_flight = options.target_in_flight
    target = {"targetQueueTime": options.queue_seconds * 1000} if in_flight is None else {"targetInFlight": in_flight}
    return {
        **target,
        "upDelay": options.up_delay,
        "downDelay": options.down_delay,
        "idleTime": options.idle_time,
        "wanted": wanted,
        **({"reason": reason} if (reason := why_not_more or _lacks(wanted, kept)) else {}),
        **({"lastDecision": last} if last else {}),
    }


def _lacks(wanted: int, kept: Sequence[Replica]) -> str:
    """Reason why wanted workers wait."""
    waits = next((one.shortage for one in kept if one.state is ReplicaState.WAITING and one.shortage), None)
    if waits is None:
        return ""
    have = sum(one.state is not ReplicaState.WAITING for one in kept)
    return f"wanted {wanted}, {have}: waits for {waits.resource}: {waits.reason}"


def _target(options: AutoscalingOptions) -> str:
    in_flight = options.target_in_flight
    return f"target {options.queue_seconds:g} s" if in_flight is None else f"target {in_flight:g} in flight for each"
