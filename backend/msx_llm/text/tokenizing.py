"""Texts to tokens, and back, without keeping a worker's loop or its interpreter from the texts that it generates."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from msx_llm.text.text_calls import TextCall, TextFiles
from msx_llm.text.text_process import TextProcesses

T = TypeVar("T")
R = TypeVar("R")

SHORT = 2_000
"""Characters: to tokenize longer texts takes longer than to start a thread."""
MIDDLE = 32_768
"""Characters: of longer texts even what the tokenizer does with the interpreter's lock, to hand over tokens, is felt by
the texts that are generated meanwhile."""


class Tokenizing(Generic[T]):
    """Answers calls by `texts`: of short texts at once, of longer ones in a thread, one after the other, and of very
    long ones in processes of lower priority, which load `files` to the same. `largest_body` as of `message_limit`.

    The thread has the worker's priority: a lower one could be put aside while it has the interpreter's lock.
    """

    def __init__(self, texts: T, files: TextFiles[T], largest_body: int) -> None:
        self._texts = texts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
        self._processes = TextProcesses(files, largest_body)

    async def run(self, call: TextCall[T, R], size: int) -> R:
        """`size`: the characters that the call is about. If the caller is cancelled, a call that waits is not answered,
        and a process that answers it ends. Raises what the answer raises."""
        if size <= SHORT:
            return call.answer(self._texts)
        if size <= MIDDLE:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call.answer, self._texts)
        return await self._processes.call(call, size)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
