"""A small tensor that a model takes, for those who look for the first time.

Zeros, but ones for a mask or a length: a text without any token that counts has no mean, and the answer would be NaN.
`predict.js` of the playground does the same.
"""

import re
from collections.abc import Sequence
from typing import Any

IMAGE_SIZE = 32
"""Pixels of a side that may have any length."""
_IMAGE_AXES = 4
_COUNTS = re.compile(r"mask|len(gth)?s?$")


def example_shape(shape: Sequence[int]) -> list[int]:
    """1 for each size that may be any, but a small image's for the sides of images: a convolution needs room."""
    sides = range(2, _IMAGE_AXES) if len(shape) == _IMAGE_AXES else ()
    return [size if size > 0 else IMAGE_SIZE if axis in sides else 1 for axis, size in enumerate(shape)]


def example_value(name: str, datatype: str) -> Any:
    """`datatype`: of the Open Inference Protocol."""
    counts = _COUNTS.search(name.lower()) is not None
    if datatype == "BOOL":
        return counts
    return "text" if datatype == "BYTES" else int(counts)
