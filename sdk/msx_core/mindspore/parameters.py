"""Loads all weights of a file into a network, or none."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msx_core.errors import HandlerLoadError
from msx_core.file_kinds import CKPT, SAFETENSORS, head_of, mistaken

FORMATS = {CKPT: "ckpt", SAFETENSORS: "safetensors"}
_SHOWN = 8


def load_parameters(cell: Any, path: Path) -> None:
    """Load a MindSpore checkpoint (`.ckpt` or `.safetensors`) into an `nn.Cell`.

    Raises HandlerLoadError that names every parameter (the first eight of each kind) that is missing in the file,
    that the network does not have, or whose shape or type differs.
    """
    import mindspore as ms

    stored = _read(ms, path)
    wanted = {parameter.name: parameter for parameter in cell.get_parameters()}
    found = {
        "missing in the file": sorted(wanted.keys() - stored.keys()),
        "not in the network": sorted(stored.keys() - wanted.keys()),
        "of another shape": [
            _shapes(n, stored[n], wanted[n]) for n in wanted if n in stored and _differ(stored[n], wanted[n])
        ],
    }
    if any(found.values()):
        faults = "; ".join(f"{fault}: {_listed(names)}" for fault, names in found.items() if names)
        raise HandlerLoadError(f"{path.name} does not fit the network {type(cell).__name__}: {faults}")
    ms.load_param_into_net(cell, stored, strict_load=False)


def _read(ms: Any, path: Path) -> dict[str, Any]:
    kind = FORMATS.get(path.suffix)
    if kind is None:
        raise HandlerLoadError(f"{path.name}: expected a checkpoint that ends with {' or '.join(FORMATS)}")
    if other := mistaken(path.name, path.suffix, head_of(path)):
        raise HandlerLoadError(other)
    try:
        stored: dict[str, Any] = ms.load_checkpoint(str(path), format=kind)
    except (ValueError, RuntimeError, TypeError, OSError) as error:
        raise HandlerLoadError(f"{path.name} is not a MindSpore checkpoint: {error}") from error
    return stored


def _differ(stored: Any, wanted: Any) -> bool:
    return tuple(stored.shape) != tuple(wanted.shape)


def _shapes(name: str, stored: Any, wanted: Any) -> str:
    return f"{name} (file {tuple(stored.shape)}, network {tuple(wanted.shape)})"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest
