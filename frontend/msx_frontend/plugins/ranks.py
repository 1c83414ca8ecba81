"""Processes of ranks on this machine, for a launcher's agents on other machines. Loads nothing of HTTP or models."""

from msx_frontend.workers.environment import THREADS, python_path
from msx_frontend.workers.local import free_port
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.rank_start import ProcessSpec, start_rank

__all__ = ["THREADS", "LocalRank", "ProcessSpec", "free_port", "python_path", "start_rank"]
