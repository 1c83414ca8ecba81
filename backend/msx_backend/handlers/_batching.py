"""Runs many requests in few calls of the network: rows along axis 0, and splits the outputs again."""

from collections.abc import Sequence
from typing import Any

from msx_backend.handlers._arrays import Array
from msx_backend.handlers._joined import JoinedRequests, alike, concatenated, cut
from msx_core.mindspore.joined_rows import run_rows
from msx_sdk.mindspore import Network

Result = list[Array] | Exception


def run_all(network: Network, requests: Sequence[list[Array]], axis: int | None, inputs: Any = None) -> list[Result]:
    """One result for each request, in order. If the network raises for a request that runs alone, the exception is its
    result. Rows that `inputs`, a `JoinedRequests`, has in one array are not copied."""
    if axis is None:
        return [_run_alone(network, arrays) for arrays in requests]
    results: list[Result] = [[] for _ in requests]
    for members in alike(requests):
        own = [requests[idx] for idx in members]
        for idx, result in zip(members, _run_joined(network, own, _rows_of(own, inputs), axis), strict=True):
            results[idx] = result
    return results


def _rows_of(requests: list[list[Array]], inputs: Any) -> list[Array]:
    """The rows of requests of one shape, an array for each input."""
    if len(requests) == 1:
        return requests[0]
    joined = inputs.joined if isinstance(inputs, JoinedRequests) else ()
    return next((one.arrays for one in joined if one.holds(requests)), None) or concatenated(requests)


def _run_joined(network: Network, requests: list[list[Array]], rows: list[Array], axis: int) -> Sequence[Result]:
    outputs = run_rows(network, rows, axis)
    if len(requests) == 1:
        return [outputs]
    lengths = [len(arrays[0]) for arrays in requests]
    if any(output.shape[:1] != (sum(lengths),) for output in outputs):
        return [_run_alone(network, arrays) for arrays in requests]  # its outputs do not have a row for each request
    return [list(pieces) for pieces in zip(*(cut(output, lengths) for output in outputs), strict=True)]


def _run_alone(network: Network, arrays: list[Array]) -> Result:
    try:
        return network(arrays)
    except Exception as error:
        return error
