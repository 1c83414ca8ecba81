"""The numbers that floating-point types hold, by the names of the Open Inference Protocol. Needs no NumPy."""

import sys
from typing import NamedTuple


class FloatLimits(NamedTuple):
    code: str
    """The type's letter in `struct`; BF16 has none, and goes by FP32."""
    largest: float
    infinite: float
    """The least number that rounds to infinity: half a unit above the largest, BF16 by way of FP32."""


FLOATS = {
    "FP16": FloatLimits("e", 65504.0, 65520.0),
    "BF16": FloatLimits("f", 2.0**128 - 2.0**120, 2.0**128 - 2.0**119 - 2.0**103),
    "FP32": FloatLimits("f", 2.0**128 - 2.0**104, 2.0**128 - 2.0**103),
    "FP64": FloatLimits("d", sys.float_info.max, 2**1024 - 2**970),
}
