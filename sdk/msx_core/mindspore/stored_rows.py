"""Rows and a network's answers to them, kept beside its MindIR: `net.expected.npz` beside `net.mindir`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from msx_core.errors import HandlerLoadError
from msx_core.mindir import answers_beside

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LARGEST = 1 << 30
"""Bytes of all arrays of a file: three rows of anything are less."""
_INPUT, _OUTPUT = "input_{}", "output_{}"


class StoredRows(NamedTuple):
    """One array for each input, and the network's answer to them as one array for each output."""

    inputs: list[Array]
    outputs: list[Array]

    def answers(self, arrays: Sequence[Array]) -> list[Array | None]:
        """Answers to the first rows; None for an output that has no row for each."""
        count, rows = len(arrays[0]), len(self.inputs[0])
        return [one[:count] if one.shape[:1] == (rows,) else one if count == rows else None for one in self.outputs]

    def write(self, mindir: Path) -> Path:
        import numpy as np

        path = answers_beside(mindir)
        named = {_INPUT.format(n): array for n, array in enumerate(self.inputs)}
        named |= {_OUTPUT.format(n): array for n, array in enumerate(self.outputs)}
        np.savez_compressed(path, **named)
        return path


def read_stored(mindir: Path) -> StoredRows | None:
    """None where the MindIR has no file of answers. Raises HandlerLoadError for one that is damaged."""
    import numpy as np

    path = answers_beside(mindir)
    if not path.is_file():
        return None
    try:
        with ZipFile(path) as packed:
            size = sum(one.file_size for one in packed.infolist())
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes of arrays, and at most {LARGEST} are read")
        with np.load(path, allow_pickle=False) as file:
            stored = StoredRows(_arrays(file, _INPUT), _arrays(file, _OUTPUT))
    except (OSError, ValueError, EOFError, MemoryError, BadZipFile) as error:
        raise HandlerLoadError(
            f"{path.name} cannot be read, export the network anew or leave it out: {error}"
        ) from None
    if not stored.inputs or not stored.outputs or any(not one.ndim for one in stored.inputs):
        raise HandlerLoadError(f"{path.name} has no rows: export the network anew, or leave the file out")
    return stored


def _arrays(file: Any, name: str) -> list[Array]:
    names: Sequence[str] = [name.format(n) for n in range(len(file.files))]
    return [file[one] for one in names if one in file.files]
