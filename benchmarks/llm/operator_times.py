"""Time of each kind of operator in the graphs of a CPU, as MindSpore's profiler has it."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import mindspore.profiler as ms_profiler

FILES = "*/FRAMEWORK/cpu_op_type_info_*.csv"


class OperatorTime(NamedTuple):
    calls: float
    """Calls of a step."""
    seconds: float
    """Seconds of a step."""


def step_seconds(step: Callable[[], None], steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        found.append(time.perf_counter() - began)
    return found


def operator_times(step: Callable[[], None], steps: int) -> dict[str, OperatorTime]:
    """Measure operators by their names. While it is profiled, a step takes longer; its operators do not."""
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        handler = ms_profiler.tensorboard_trace_handler(folder)
        with ms_profiler.profile(activities=[ms_profiler.ProfilerActivity.CPU], on_trace_ready=handler):
            for _ in range(steps):
                step()
        with next(Path(folder).glob(FILES)).open() as file:
            return {row["op_type"]: _of_a_step(row, steps) for row in csv.DictReader(file)}


def _of_a_step(row: dict[str, str], steps: int) -> OperatorTime:
    return OperatorTime(int(row["type_occurrences"]) / steps, float(row["total_compute_time"]) / 1e3 / steps)
