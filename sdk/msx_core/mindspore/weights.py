"""Parts of tensors from memory-mapped files, safetensors, GGUF or MindSpore's `.ckpt`: only what is used is read."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msx_core.errors import HandlerLoadError
from msx_core.file_kinds import CKPT, GGUF, SAFETENSORS, head_of, mistaken

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

INDEX = "model.safetensors.index.json"


class Weights:
    """One `.safetensors`, `.ckpt` or `.gguf` file, an index of several (`model.safetensors.index.json`), or a folder
    with one.

    A context manager: the files are open until it ends. `import mindspore` must have happened: it gives NumPy its
    bfloat16. `called`: the file's name in messages, where `path` has another one. Raises HandlerLoadError for a file
    that is missing or is not a safetensors file.
    """

    def __init__(self, path: Path, called: str = "") -> None:
        self._path = _find(path)
        self._called = called or self._path.name
        self._open = functools.cache(functools.partial(_open_file, called))
        self._files = _read_index(self._path) if self._path.suffix == ".json" else self._names(self._path)
        self._stored: Mapping[str, str] = {}
        """The names in the files of tensors that have other names here."""

    def __enter__(self) -> Weights:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.cache_clear()  # the files are closed with their last user

    def __contains__(self, name: str) -> bool:
        return name in self._files

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._slice(name).get_shape())

    def read(self, name: str, *index: slice) -> Array:
        """The tensor, or its part `index` (a slice an axis from the first on), as an array; bfloat16 as float32."""
        import numpy as np

        array = self._slice(name)[index or ...]
        return array.astype(np.float32) if str(array.dtype) == "bfloat16" else array  # type: ignore[no-any-return]

    def _slice(self, name: str) -> Any:
        if name not in self._files:
            raise HandlerLoadError(f"{self._called} has no tensor {name!r}")
        return self._open(self._files[name]).get_slice(self._stored.get(name, name))

    def _names(self, path: Path) -> dict[str, Path]:
        return dict.fromkeys(self._open(path).keys(), path)


def part(size: int, parts: int, index: int) -> slice:
    """The `index`-th of `parts` equal parts of an axis; the last ones may be shorter."""
    step = -(-size // parts)
    return slice(min(index * step, size), min((index + 1) * step, size))


def _find(path: Path) -> Path:
    candidates = [path / INDEX, path / "model.safetensors"] if path.is_dir() else [path]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    found = found or _only(path, CKPT, _PARTS) or _only(path, GGUF, _MODELS)
    if found is None:
        names = " nor ".join(map(str, candidates))
        raise HandlerLoadError(f"neither {names} exists" if len(candidates) > 1 else f"{names} does not exist")
    return found


_PARTS = "checkpoints: expected one, of all ranks together; make it with mindspore.transform_checkpoints"
_MODELS = "GGUF files: expected one; keep the one that is to be served"


def _only(folder: Path, ending: str, several: str) -> Path | None:
    """Hidden files are none. Raises HandlerLoadError for several."""
    found = sorted(file for file in folder.glob(f"*{ending}") if not file.name.startswith("."))
    if len(found) > 1:
        raise HandlerLoadError(f"{found[0].name} and {len(found) - 1} more {several}")
    return found[0] if found else None


def _read_index(path: Path) -> Mapping[str, Path]:
    try:
        files: dict[str, str] = json.loads(path.read_bytes())["weight_map"]
        return {name: path.parent / file for name, file in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HandlerLoadError(f"{path.name} is not an index of safetensors files: 'weight_map' is missing") from None


def _open_file(called: str, path: Path) -> Any:
    if path.suffix == CKPT:
        from msx_core.mindspore.ckpt import CkptFile

        return CkptFile(path)
    if path.suffix == GGUF:
        return _open_gguf(called, path)
    from safetensors import SafetensorError, safe_open

    try:
        if other := mistaken(called or path.name, SAFETENSORS, head_of(path)):
            raise HandlerLoadError(other)
        return safe_open(str(path), framework="np")
    except (SafetensorError, OSError) as error:
        raise HandlerLoadError(f"{called or path.name} is not a safetensors file: {error}") from None


def _open_gguf(called: str, path: Path) -> Any:
    from msx_core.gguf.errors import GgufError
    from msx_core.gguf.tensors import GgufFile

    try:
        return GgufFile(path)
    except (GgufError, OSError) as error:
        raise HandlerLoadError(f"{called or path.name} cannot be read: {error}") from None
