"""The program of a process that answers calls in tests."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, ClassVar

from msx_llm.text.text_answers import serve
from msx_llm.text.text_calls import TextCall, TextFiles
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import ContextLengthExceeded


class NoTexts:
    pass


class Where(TextCall[NoTexts, tuple[int, int]], tag=True, array_like=True):
    result = tuple[int, int]

    def answer(self, texts: NoTexts) -> tuple[int, int]:
        return os.getpid(), os.nice(0)


class Refuse(TextCall[NoTexts, None], tag=True, array_like=True, weakref=True):
    """One can see that it is freed."""

    message: str
    kind: str = "InvalidInput"
    result = None

    def answer(self, texts: NoTexts) -> None:
        if self.kind == "PredictionError":
            raise PredictionError(507, self.message)
        raise (ContextLengthExceeded if self.kind == "ContextLengthExceeded" else InvalidInput)(self.message)


class Divide(TextCall[NoTexts, float], tag=True, array_like=True):
    number: int
    result = float

    def answer(self, texts: NoTexts) -> float:
        return 1 / self.number


class Repeat(TextCall[NoTexts, str], tag=True, array_like=True):
    count: int
    result = str

    def answer(self, texts: NoTexts) -> str:
        return "x" * self.count


class Sleep(TextCall[NoTexts, None], tag=True, array_like=True):
    path: str
    result = None

    def answer(self, texts: NoTexts) -> None:
        """Until it is killed; first it says who it is."""
        Path(self.path).write_text(str(os.getpid()))
        threading.Event().wait()


class Unknown(TextCall[NoTexts, None], tag=True, array_like=True):
    """One of the worker alone."""

    result = None


class NoFiles(TextFiles[NoTexts], tag=True):
    calls: ClassVar[Any] = Where | Refuse | Divide | Repeat | Sleep

    def load(self) -> NoTexts:
        return NoTexts()


if __name__ == "__main__":
    serve(NoFiles)
