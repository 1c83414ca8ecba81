"""The value of one input or output, between the forms of REST and gRPC and what a worker reads and writes.

A value is a `Tensor`, a text, bytes, `OneText` or `OneBytes`; a reply may have what else `packed` has.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

TEXT_SHAPE = (
    "Instance tensor check failed: bytes or string type input  shape can only be (1,) or empty, but given shape is"
)


class WrongShape(NamedTuple):
    """Text or bytes whose shape is neither [] nor [1]."""

    shape: Sequence[int]


class InvalidTensor(ValueError):
    """A value that the method cannot be given; the message says why."""


def readable(value: Any) -> Any:
    """The value of an input of a method, from REST. Raises InvalidTensor."""
    if isinstance(value, WrongShape):
        raise InvalidTensor(f"{TEXT_SHAPE} {shown(value.shape)}")
    return value


def shown(shape: Sequence[object]) -> str:
    """As MindSpore Serving writes shapes and names."""
    return f"[{', '.join(map(str, shape))}]"


def hollow(shape: Sequence[int]) -> bool:
    """Whether a dimension follows one of 0 elements."""
    return 0 in shape[:-1]
