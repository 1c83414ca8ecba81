"""Runs many requests in few calls of the network: joins rows along axis 0, and splits the outputs again."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from msx_backend.handlers._arrays import Array
from msx_core.mindspore.joined_rows import run_rows
from msx_sdk.mindspore import Network

Result = list[Array] | Exception


def run_all(network: Network, requests: Sequence[list[Array]], axis: int | None) -> list[Result]:
    """One result for each request, in order. If the network raises for a request that runs alone, the exception is its
    result."""
    if axis is None:
        return [_run_alone(network, arrays) for arrays in requests]
    results: list[Result] = [[] for _ in requests]
    for members in _alike(requests):
        for idx, result in zip(members, _run_joined(network, [requests[i] for i in members], axis), strict=True):
            results[idx] = result
    return results


def _run_joined(network: Network, requests: list[list[Array]], axis: int) -> Sequence[Result]:
    lengths = [len(arrays[0]) for arrays in requests]
    joined = [np.concatenate(pieces) for pieces in zip(*requests, strict=True)] if len(requests) > 1 else requests[0]
    outputs = run_rows(network, joined, axis)
    if len(requests) == 1:
        return [outputs]
    if any(output.shape[:1] != (sum(lengths),) for output in outputs):
        return [_run_alone(network, arrays) for arrays in requests]  # its outputs do not have a row for each request
    cuts = np.cumsum(lengths)[:-1]
    return [list(pieces) for pieces in zip(*(np.split(output, cuts) for output in outputs), strict=True)]


def _run_alone(network: Network, arrays: list[Array]) -> Result:
    try:
        return network(arrays)
    except Exception as error:
        return error


def _alike(requests: Sequence[list[Array]]) -> list[list[int]]:
    """Only rows of the same shape can be joined."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for idx, arrays in enumerate(requests):
        groups[tuple(array.shape[1:] for array in arrays)].append(idx)
    return list(groups.values())
