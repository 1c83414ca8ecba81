"""The benchmarks by name: `main` of its module is the command, and `QUICK` its arguments for a short run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from benchmarks.cli.benchmark import Benchmark

MODULES = {
    "start": "benchmarks.start.start",
    "overhead": "benchmarks.throughput.overhead",
    "payload": "benchmarks.throughput.payload",
    "pipeline": "benchmarks.throughput.pipeline",
    "batching": "benchmarks.batching.batching",
    "utilisation": "benchmarks.utilisation.utilisation",
    "grpc": "benchmarks.throughput.grpc",
    "http2": "benchmarks.throughput.http2",
    "stream": "benchmarks.throughput.stream",
    "families": "benchmarks.throughput.families",
    "idle": "benchmarks.throughput.idle",
    "overload": "benchmarks.failures.overload",
    "worker_kill": "benchmarks.failures.worker_kill",
    "cancel": "benchmarks.failures.cancel",
    "parallel": "benchmarks.parallel.parallel",
    "memory": "benchmarks.memory.memory",
    "console": "benchmarks.console.console",
    "jobs": "benchmarks.jobs.jobs",
    "batches": "benchmarks.batches.batches",
    "client": "benchmarks.client.client",
    "tracing": "benchmarks.tracing.tracing",
    "llm": "benchmarks.llm.llm",
    "llm-speculation": "benchmarks.llm.speculation",
    "llm-routing": "benchmarks.llm.routing",
    "llm-adapters": "benchmarks.llm.adapters",
    "llm-quantised": "benchmarks.llm.quantised",
    "llm-operators": "benchmarks.llm.operators",
    "sampling": "benchmarks.llm.sampling",
    "llm-host": "benchmarks.llm.host",
    "llm-prompts": "benchmarks.llm.prompts",
    "engines": "benchmarks.engines.engines",
    "autoscaling": "benchmarks.autoscaling.autoscaling",
    "cluster": "benchmarks.cluster.cluster",
}
"""Modules in the order of the table of docs/benchmarks.md."""
NAMES = tuple(MODULES)


def command(name: str) -> Benchmark:
    main: Benchmark = import_module(MODULES[name]).main
    return main


def quick_arguments(name: str) -> Sequence[str]:
    arguments: Sequence[str] = import_module(MODULES[name]).QUICK
    return arguments
