"""Vectors of texts, as their replies have them."""

from collections.abc import Sequence
from math import hypot
from operator import mul
from struct import unpack

import msgspec

from msx_core.generation import EmbedReply

Vector = tuple[float, ...]

_json = msgspec.json.Encoder().encode


def vector_of(reply: EmbedReply) -> Vector:
    return unpack(f"<{len(reply.embedding) // 4}f", reply.embedding)


def vector_json(reply: EmbedReply) -> msgspec.Raw:
    return numbers_json(vector_of(reply))


def numbers_json(numbers: Sequence[float]) -> msgspec.Raw:
    """Numbers as a part of a reply that is JSON already: it has a third of their size, and no part takes long."""
    return msgspec.Raw(_json(numbers))


def cosines(first: Sequence[Vector], second: Sequence[Vector]) -> list[float]:
    """Cosines of the angles between first and second vectors, or one first vector and all second ones; 0 where one of
    them is all zeros."""
    lengths = [hypot(*one) for one in first]
    if len(first) == 1:
        first, lengths = [first[0]] * len(second), lengths * len(second)
    return [_cosine(*pair) for pair in zip(first, second, lengths, strict=True)]


def _cosine(one: Vector, other: Vector, length: float) -> float:
    lengths = length * hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
