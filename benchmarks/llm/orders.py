"""The side of a peer that takes orders: a JSON object a line on stdin, an answer a line on what was stdout.

The standard library alone: the peers run in virtual environments of their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


def serve(orders: dict[str, Callable[..., Answer]]) -> None:
    """`{"do": name, **arguments}` calls `orders[name](**arguments)`, until stdin ends."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what libraries print is not an answer
        for line in sys.stdin:
            order = json.loads(line)
            json.dump(orders[order.pop("do")](**order), answers)
            answers.write("\n")
            answers.flush()
