"""`ts.metrics.process_memory_metric`: the memory of processes."""

import logging
from typing import TextIO

import psutil


def get_cpu_usage(pid: str | int) -> int:
    """Its resident memory in bytes; 0 if the process has ended."""
    try:
        return int(psutil.Process(int(pid)).memory_info().rss)
    except psutil.Error as error:
        logging.error("process %s: %s", pid, error)
        return 0


def check_process_mem_usage(stdin: TextIO) -> None:
    """Log `pid:bytes` for each of the pids of one line, which have commas between."""
    for pid in filter(None, stdin.readline().strip().split(",")):
        logging.info("%s:%d", pid, get_cpu_usage(pid))
