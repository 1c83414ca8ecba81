"""Choices between two forms of a call, of which only a device can show the better one. The first of each is the safer
one: what MindSpore's stacks do, or what rounds less."""

import os
from typing import NamedTuple

from msx_sdk.errors import HandlerLoadError


class Switch(NamedTuple):
    """An environment variable of the worker, and its values."""

    variable: str
    safer: str
    other: str

    @property
    def is_safer(self) -> bool:
        """Raises HandlerLoadError for any other value."""
        value = os.environ.get(self.variable, self.safer)
        if value not in (self.safer, self.other):
            raise HandlerLoadError(f"{self.variable}={value[:40]}: it is {self.safer} (the default) or {self.other}")
        return value == self.safer


ROTARY = Switch("MSX_NPU_ROTARY", "table", "rows")
"""Cosines and sines of prompts, of which no text has anything in the cache: the whole table, or a row of each token."""
ROUTERS = Switch("MSX_NPU_ROUTERS", "float32", "model")
"""The type in which routers multiply."""
MASKS = Switch("MSX_NPU_MASKS", "cached", "made")
"""Masks of chunks: rows of a mask that is made once, or made in each step."""
