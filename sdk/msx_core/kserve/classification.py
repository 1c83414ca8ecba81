"""Triton's classification extension: the largest values in each row of an output, with the names of their classes."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from msx_core.errors import InvalidInput, PredictionError
from msx_core.json_text import json_text
from msx_core.kserve.request import numpy_tensors

FILE = "index_to_name.json"


class ClassLabels:
    """The class names in the archive's `index_to_name.json`, read at the first use; without the file classes have no
    names.

    A value is a name, or a list whose last item is the name, as in TorchServe's handlers.
    """

    def __init__(self, model_dir: Path | None = None) -> None:
        self._path = None if model_dir is None else model_dir / FILE

    @cached_property
    def names(self) -> dict[str, str]:
        """Class names by the class's number as text. Raises PredictionError for a malformed file."""
        if self._path is None or not self._path.is_file():
            return {}
        try:
            found = dict(json.loads(json_text(self._path.read_bytes())))
        except (ValueError, TypeError) as error:
            raise PredictionError(500, f"{FILE} is not a JSON object of class numbers and names: {error}") from None
        return {
            str(number): str(name[-1] if isinstance(name, list) and name else name) for number, name in found.items()
        }

    def suffix(self, number: int) -> str:
        name = self.names.get(str(number))
        return "" if name is None else f":{name}"


UNNAMED = ClassLabels()


def largest(what: str, array: Any, count: int, labels: ClassLabels) -> Any:
    """The `count` largest values along the last axis, largest first, each as `value:class[:name]`; among equal values
    the first class wins. Raises InvalidInput for an array without numbers."""
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{what}: classification is for numbers, and this output has none")
    np, classes = numpy_tensors().np, array.shape[-1]
    ascending = np.argsort(np.flip(array, -1), axis=-1, kind="stable")
    chosen = classes - 1 - np.flip(ascending, -1)[..., :count]
    values = np.take_along_axis(array, chosen, -1)
    pairs = zip(values.ravel().tolist(), chosen.ravel().tolist(), strict=True)
    texts = [_text(value, number, labels) for value, number in pairs]
    made = np.empty(len(texts), object)
    made[:] = texts
    return made.reshape(chosen.shape)


def _text(value: float, number: int, labels: ClassLabels) -> bytes:
    shown = f"{value:f}" if isinstance(value, float) else str(value)
    return f"{shown}:{number}{labels.suffix(number)}".encode()
