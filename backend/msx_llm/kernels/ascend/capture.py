"""Capture of decoding steps: what the host launches for one is recorded, and replayed for later ones of its size."""

from collections.abc import Sequence

import mindspore as ms

from msx_llm.kernels.ascend.inputs import DECODE

NOT_CAPTURED = ["moveto"]
"""Operators that copy between host and device are launched beside the record (vllm-mindspore 0.5.1,
gpu_model_runner.py)."""


class DecodeCapture:
    """Which steps are captured: decoding steps of some numbers of texts, to the next of which others are filled up.

    MindSpore records a graph whose `phase` is "increment" once for each set of shapes, while capture is on
    (`mindspore.runtime.set_kernel_launch_capture` of 2.10).
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self._on = sorted(sizes), False

    def size_of(self, kind: int, texts: int) -> int:
        """How many texts the step has when it is filled up; 0: it is not captured."""
        return next((size for size in self.sizes if kind == DECODE and size >= texts), 0)

    def switch(self, on: bool) -> None:
        """Switch it for the graphs that are called from now on."""
        if on != self._on:
            ms.runtime.set_kernel_launch_capture(on, NOT_CAPTURED)
            self._on = on
