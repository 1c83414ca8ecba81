"""Texts to tokens, and back, without keeping a worker's loop or its interpreter from the texts that it generates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from msx_backend.llm.text.text_process import TextProcesses

T = TypeVar("T")
Q = TypeVar("Q")
R = TypeVar("R")

SHORT = 2_000
"""Characters: to tokenize longer texts takes longer than to start a thread."""
MIDDLE = 32_768
"""Characters: of longer texts even what the tokenizer does with the interpreter's lock, to hand over tokens, is felt by
the texts that are generated meanwhile."""


class Tokenizing(Generic[T]):
    """Calls functions of `texts`: of short texts at once, of longer ones in a thread, one after the other, and of very
    long ones in processes of lower priority, which `make` makes `texts` in again.

    The thread has the worker's priority: a lower one could be put aside while it has the interpreter's lock.
    """

    def __init__(self, texts: T, make: Callable[[], T]) -> None:
        self._texts = texts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
        self._processes = TextProcesses(make)

    async def run(self, function: Callable[[T, Q], R], request: Q, size: int) -> R:
        """`function` is a method of the class of `texts`, `size` the characters that it is about. If the caller is
        cancelled, a function that waits is not called, and a process that calls it ends. Raises what it raises."""
        if size <= SHORT:
            return function(self._texts, request)
        if size <= MIDDLE:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, self._texts, request)
        answer: R = await self._processes.call(function.__name__, request, size)
        return answer

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
