"""Runs many requests in few calls of the network: joins rows along axis 0, and splits the outputs again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from msx_backend.handlers._arrays import Array
from msx_sdk._internal.mindir import DYNAMIC_RANK, TensorSpec
from msx_sdk.mindspore import Network

ANY = -1
Result = list[Array] | Exception


def batch_axis(network: Network) -> int | None:
    """How many rows one call takes: `ANY`, a fixed number, or None if axis 0 is not the same for all tensors.

    The outputs of a checkpoint are unknown before its first call; `run_rows` looks at them then.
    """
    sizes = {_first(spec) for spec in [*network.inputs, *network.outputs]}
    return sizes.pop() if len(sizes) == 1 else None


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


def run_rows(network: Network, arrays: list[Array], axis: int) -> list[Array]:
    """Any number of rows: in one call, or in calls of the fixed size with the last one padded."""
    if axis == ANY:
        return network(arrays)
    rows = len(arrays[0])
    parts = [network([_padded(a[at : at + axis], axis) for a in arrays]) for at in range(0, rows, axis)]
    return [np.concatenate(pieces)[:rows] for pieces in zip(*parts, strict=True)]


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


def _padded(array: Array, rows: int) -> Array:
    missing = rows - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


def _first(spec: TensorSpec) -> int | None:
    if spec.shape == DYNAMIC_RANK:
        return ANY
    return spec.shape[0] if spec.shape else None
