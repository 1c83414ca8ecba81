"""The benchmarks: NAME is the command `main` of benchmarks/NAME.py, and QUICK there its arguments for a short run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from benchmarks._command import Benchmark

NAMES = (
    "start",
    "overhead",
    "payload",
    "batching",
    "grpc",
    "stream",
    "overload",
    "worker_kill",
    "cancel",
    "parallel",
    "memory",
    "llm",
)
"""In the order of docs/benchmarks.md."""


def command(name: str) -> Benchmark:
    main: Benchmark = import_module(f"benchmarks.{name}").main
    return main


def quick_arguments(name: str) -> Sequence[str]:
    arguments: Sequence[str] = import_module(f"benchmarks.{name}").QUICK
    return arguments
