"""Caches that are parameters of the two graphs, and not inputs: both use the same memory."""

from pathlib import Path
from typing import Any

from msx_core.mindir import read_signature
from msx_core.mindspore.network import Network


def share_caches(prefill: Network, increment: Network, file: Path) -> bool:
    """Whether the increment, whose file this is, has caches that the prefill has, too. Weights alone are none: without
    an operator that writes a parameter each token would be the first of its text."""
    return read_signature(file).writes_parameters and bool(share_parameters(prefill, increment))


def share_parameters(prefill: Network, increment: Network) -> list[str]:
    """Names of the parameters of both, with the same shape and type, that are the same tensor from now on.

    Loaded each by itself, graphs have parameters of their own; `Parameter.set_data` puts one in the other's place.
    """
    own: dict[str, Any] = {one.name: one for one in _parameters(prefill)}
    shared = []
    for other in _parameters(increment):
        one = own.get(other.name)
        if one is not None and (one.shape, one.dtype) == (other.shape, other.dtype):
            other.set_data(one)
            shared.append(other.name)
    return shared


def _parameters(network: Network) -> Any:
    return () if network.cell is None else network.cell.get_parameters()
