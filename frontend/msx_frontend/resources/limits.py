"""Limits that follow from the machine, or its cgroup, where the configuration does not set them."""

from msx_core.cgroup import cores
from msx_frontend.config import ServerConfig

LEAST_PROCESSES = 64
OF_EACH = 4
"""Worker processes for each core, and for each device."""


def worker_processes(config: ServerConfig, devices: int) -> int:
    return config.max_worker_processes or max(LEAST_PROCESSES, OF_EACH * cores(), OF_EACH * devices)


def parallel_starts(config: ServerConfig) -> int:
    return config.parallel_starts or cores()
