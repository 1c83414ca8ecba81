"""Functions that a process calls in tests."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from msx_sdk.errors import InvalidInput


class Text(str):
    """A text of which one can see that it is freed."""


class CallTexts:
    def where(self, request: None) -> tuple[int, int]:
        return os.getpid(), os.nice(0)

    def refuse(self, message: str) -> None:
        raise InvalidInput(message)

    def divide(self, number: int) -> float:
        return 1 / number

    def sleep(self, path: Path) -> None:
        """Until it is killed; first it says who it is."""
        path.write_text(str(os.getpid()))
        threading.Event().wait()
