"""Lines about the machine, without which the figures cannot be judged."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from msx_frontend.commit import describe_commit
from tests.gpu_check.cards import Cards

_TORCH = """
import json, torch
print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.is_available(), torch.cuda.device_count()]))
"""


def lines(cards: Cards | None) -> Iterator[str]:
    yield f"- MSX {version('msx-serve')}, {describe_commit()}"
    yield f"- {platform.platform()}, Python {platform.python_version()}"
    yield from cards.lines() if cards else ["- no GPU: two are simulated, and torch computes on the CPU"]


def torch_of_workers() -> tuple[str, str | None, bool, int]:
    """Version of torch, of the CUDA that it was built with, whether that works here, and how many GPUs it sees.

    Asked in a process of its own: CUDA would take memory here, too, and the checks measure it.
    """
    done = subprocess.run([sys.executable, "-c", _TORCH], capture_output=True, text=True, timeout=300, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found[0], found[1], found[2], found[3]
