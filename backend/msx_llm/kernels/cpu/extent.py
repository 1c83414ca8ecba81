"""The lengths that contexts have on a CPU."""

ALIGNMENT = 64
"""Context lengths are multiples of this."""


def extent(context: int) -> int:
    """The number of positions that are read if `context` are wanted."""
    return -(-context // ALIGNMENT) * ALIGNMENT
