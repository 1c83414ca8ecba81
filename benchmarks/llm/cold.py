"""Time that a processor loses after a sleep."""

from __future__ import annotations

import json
import time
from statistics import median

ROUNDS = 40
RECORDS = [{"id": number, "text": str(number), "tokens": [number] * 5} for number in range(12)]


def after_sleep(seconds: float) -> float:
    """How many times the processor time a fixed piece of Python takes after a sleep, of what it takes right behind
    itself. A virtual machine whose processor sleeps gives its caches away."""
    return _micros(seconds) / _micros(0)


def _micros(seconds: float) -> float:
    times = []
    for _ in range(ROUNDS):
        if seconds:
            time.sleep(seconds)
        began = time.thread_time()
        _work()
        times.append((time.thread_time() - began) * 1e6)
    return median(times)


def _work() -> None:
    """A hundred microseconds, of many functions."""
    for record in RECORDS:
        json.loads(json.dumps(record))
    sorted(RECORDS, key=lambda record: str(record["text"]))
