"""`ts.handler_utils.hf_batch_streamer`: the text of a whole batch while transformers' `generate` runs in a thread."""

from collections.abc import Iterator
from queue import Queue
from typing import Any


class TextIteratorStreamerBatch:
    """Pass it to `generate` as `streamer`, and iterate: each item is a list with one new piece of text a sequence.

    A piece ends at a word's end, as in transformers' own streamer. `timeout` is in seconds: `queue.Empty` after it.
    """

    def __init__(
        self,
        tokenizer: Any,
        batch_size: int,
        skip_prompt: bool = False,
        timeout: float | None = None,
        **decode_kwargs: Any,
    ) -> None:
        self.tokenizer, self.batch_size, self.skip_prompt = tokenizer, batch_size, skip_prompt
        self.timeout, self.decode_kwargs = timeout, decode_kwargs
        self.text_queue: Queue[list[str] | None] = Queue()
        self._prompt = True
        self._clear()

    def put(self, value: Any) -> None:
        """Tokens from `generate`: the prompts first, [batch, length], then one a sequence. Raises ValueError."""
        rows = value.tolist()
        if len(rows) != self.batch_size:
            raise ValueError(f"the streamer was made for {self.batch_size} sequences, and was given {len(rows)}")
        prompt, self._prompt = self._prompt, False
        if prompt and self.skip_prompt:
            return
        for tokens, row in zip(self._tokens, rows, strict=True):
            tokens.extend(row if isinstance(row, list) else [row])
        self.text_queue.put([self._new(idx, final=False) for idx in range(self.batch_size)], timeout=self.timeout)

    def end(self) -> None:
        """Yields the remaining text, then ends the iteration."""
        self.text_queue.put([self._new(idx, final=True) for idx in range(self.batch_size)], timeout=self.timeout)
        self.text_queue.put(None, timeout=self.timeout)
        self._prompt = True
        self._clear()

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        pieces = self.text_queue.get(timeout=self.timeout)
        if pieces is None:
            raise StopIteration
        return pieces

    def _new(self, idx: int, final: bool) -> str:
        text: str = self.tokenizer.decode(self._tokens[idx], **self.decode_kwargs)
        ready = len(text) if final or text.endswith("\n") else text.rfind(" ") + 1
        piece = text[self._shown[idx] : ready]
        self._shown[idx] = max(self._shown[idx], ready)
        return piece

    def _clear(self) -> None:
        self._tokens: list[list[int]] = [[] for _ in range(self.batch_size)]
        self._shown = [0] * self.batch_size
