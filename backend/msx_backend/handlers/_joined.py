"""Rows of a batch's requests in common arrays, made while requests are read: `inference` copies none of them again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from msx_backend.handlers._arrays import Array


class JoinedRows(NamedTuple):
    """The rows of requests of one shape: an array for each input, and the views of it that the requests have."""

    arrays: list[Array]
    views: list[list[Array]]

    def holds(self, requests: Sequence[list[Array]]) -> bool:
        """Whether just these requests have the views, in order: a subclass may have given them other arrays."""
        return len(requests) == len(self.views) and all(
            len(own) == len(views) and all(map(is_, own, views))
            for own, views in zip(requests, self.views, strict=True)
        )


class JoinedRequests(list[Any]):
    """The requests of a batch, or exceptions in their places, and where their rows stand."""

    def __init__(self, requests: Iterable[Any], joined: Sequence[JoinedRows]) -> None:
        super().__init__(requests)
        self.joined = joined


class RowBuffer:
    """Rows of one shape that are written one by one. It grows: how many a request has is its client's word."""

    def __init__(self, shape: Sequence[int], rows: int) -> None:
        self._rows = np.empty((rows, *shape), np.float32)
        self.used = 0

    def add(self, row: Array) -> None:
        if self.used == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self.used] = row
        self.used += 1

    @property
    def rows(self) -> Array:
        return self._rows[: self.used]


def join(requests: Sequence[list[Array]]) -> list[JoinedRows]:
    """Copy the rows of requests of one shape into common arrays, and give the requests views of them."""
    groups = [[requests[idx] for idx in members] for members in alike(requests)]
    return [_join(group) for group in groups if len(group) > 1]


def alike(requests: Sequence[list[Array]]) -> list[list[int]]:
    """Only rows of the same shape can be joined."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for idx, arrays in enumerate(requests):
        groups[tuple(array.shape[1:] for array in arrays)].append(idx)
    return list(groups.values())


def cut(rows: Array, lengths: Iterable[int]) -> list[Array]:
    """Views of parts that follow each other."""
    return [rows[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def concatenated(requests: Sequence[list[Array]]) -> list[Array]:
    return [np.concatenate(pieces) for pieces in zip(*requests, strict=True)]


def _join(requests: Sequence[list[Array]]) -> JoinedRows:
    arrays, lengths = concatenated(requests), [len(own[0]) for own in requests]
    for own, views in zip(requests, zip(*(cut(array, lengths) for array in arrays), strict=True), strict=True):
        own[:] = views
    return JoinedRows(arrays, [list(own) for own in requests])
