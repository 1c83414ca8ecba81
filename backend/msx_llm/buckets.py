"""Sizes to which steps are padded."""

from bisect import bisect_left
from collections.abc import Sequence


def bucket_of(buckets: Sequence[int], wanted: int) -> int:
    """Return the first that holds so many; the largest where none does."""
    return buckets[min(bisect_left(buckets, wanted), len(buckets) - 1)]
