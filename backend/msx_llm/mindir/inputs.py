"""Roles of an exported graph's inputs, and the arrays for them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from msx_core.mindir import TensorSpec
from msx_llm.mindir.options import SECTION, InputNames
from msx_sdk.errors import HandlerLoadError

TOKENS, POSITION, VALID_LENGTH, MASK, CACHE = "tokens", "position", "validLength", "mask", "caches"
FIXED = "fixed"
"""An input of MindFormers' graphs whose value does not depend on the text."""

USUAL = {
    TOKENS: ("tokens", "input_ids", "token_ids", "input_tokens"),
    POSITION: ("position", "positions", "position_ids", "current_index", "input_position"),
    VALID_LENGTH: ("valid_length", "batch_valid_length", "valid_lengths"),
    MASK: ("mask", "attention_mask", "input_mask"),
    FIXED: ("init_reset", "batch_index", "decode_index", "zactivate_len"),
}

Array = np.ndarray[Any, Any]


class TextRow(NamedTuple):
    """One text of a call: tokens that are appended at the position `start`."""

    tokens: Sequence[int]
    start: int

    @property
    def last(self) -> int:
        """The position of the last token."""
        return self.start + len(self.tokens) - 1


class GraphInputs:
    """The inputs of one of the two graphs. `batch` texts of up to `length` tokens are given to a call."""

    def __init__(self, file: str, specs: Sequence[TensorSpec], names: InputNames) -> None:
        """Raises HandlerLoadError for a graph whose inputs have no meaning here, or no fixed sizes."""
        self.file, self.specs = file, list(specs)
        self.roles = _roles(file, specs, names)
        for spec in specs:
            if any(size < 0 for size in spec.shape):
                raise HandlerLoadError(
                    f"{file}: the input {spec.name!r} has sizes that vary; export the model with fixed ones"
                )
        tokens = self._only(TOKENS)
        if len(tokens.shape) != 2:
            raise HandlerLoadError(f"{file}: {tokens.name!r} must have the shape [texts, tokens], not {_shape(tokens)}")
        self.batch, self.length = tokens.shape
        for role, spec in zip(self.roles, specs, strict=True):
            if role in (POSITION, VALID_LENGTH, MASK):
                self._check(role, spec)
        self.caches = self._caches(names)

    @property
    def mask_length(self) -> int | None:
        """How many positions the mask is about; None without one."""
        return self._only(MASK).shape[-1] if MASK in self.roles else None

    def arrays(self, rows: Sequence[TextRow], pad: int) -> list[Array | None]:
        """One array an input, None for a cache. There are `batch` rows."""
        return [
            None if role == CACHE else np.asarray(self._values(role, spec, rows, pad), spec.dtype).reshape(spec.shape)
            for role, spec in zip(self.roles, self.specs, strict=True)
        ]

    def _values(self, role: str, spec: TensorSpec, rows: Sequence[TextRow], pad: int) -> Any:
        if role == TOKENS:
            return [[*row.tokens, *[pad] * (self.length - len(row.tokens))] for row in rows]
        if role == FIXED:
            return self._fixed(spec)
        if role == MASK:
            return [np.arange(spec.shape[-1]) <= row.last for row in rows]
        return [row.last + 1 for row in rows] if role == VALID_LENGTH else self._positions(rows, spec)

    def _fixed(self, spec: TensorSpec) -> Any:
        """`init_reset` is true where caches are kept, an index that of each text's row; of `zactivate_len` the size
        alone counts."""
        if spec.dtype == "bool":
            return np.full(spec.shape, self.length == 1)
        return np.arange(self.batch) if spec.name.endswith("_index") else np.zeros(spec.shape)

    def _positions(self, rows: Sequence[TextRow], spec: TensorSpec) -> Any:
        """Positions of all tokens if the input has room for them, else of each text's last token."""
        if self.length == 1 or int(np.prod(spec.shape)) == self.batch:
            return [row.last for row in rows]
        return [np.minimum(row.start + np.arange(self.length), row.last) for row in rows]

    def _check(self, role: str, spec: TensorSpec) -> None:
        size = int(np.prod(spec.shape))
        if role == MASK:
            fits = len(spec.shape) > 1 and spec.shape[0] == self.batch and size == self.batch * spec.shape[-1]
            wanted = "[texts, positions]"
        else:
            fits = size == self.batch or (role == POSITION and size == self.batch * self.length)
            wanted = "[texts] or [texts, tokens]" if role == POSITION else "[texts]"
        if not fits:
            raise HandlerLoadError(
                f"{self.file}: {spec.name!r} ({role}) has the shape {_shape(spec)}; expected {wanted} with "
                f"{self.batch} texts of {self.length} tokens"
            )

    def _only(self, role: str) -> TensorSpec:
        return self.specs[self.roles.index(role)]

    def _caches(self, names: InputNames) -> list[int]:
        """Places of the caches among the inputs, in the order of the outputs."""
        places = [place for place, role in enumerate(self.roles) if role == CACHE]
        if names.caches is not None:
            order = {name: number for number, name in enumerate(names.caches)}
            places.sort(key=lambda place: order[self.specs[place].name])
        return places


def _roles(file: str, specs: Sequence[TensorSpec], names: InputNames) -> list[str]:
    stated = {
        role: name
        for role, name in (
            (TOKENS, names.tokens),
            (POSITION, names.position),
            (VALID_LENGTH, names.valid_length),
            (MASK, names.mask),
        )
        if name is not None
    }
    roles = [_role(spec.name, stated, names.caches) for spec in specs]
    listed = ", ".join(repr(spec.name) for spec in specs)
    for spec, role in zip(specs, roles, strict=True):
        if not role:
            raise HandlerLoadError(
                f"{file}: what the input {spec.name!r} means is not said; name it in {SECTION}.inputs, for a cache in "
                f"{SECTION}.inputs.caches"
            )
    for role in (TOKENS, *(role for role in stated if role in roles)):
        if roles.count(role) != 1:
            raise HandlerLoadError(
                f"{file}: {roles.count(role)} of the inputs {listed} are its {role}, and one must be: name it as "
                f"{SECTION}.inputs.{role}"
            )
    return roles


def _role(name: str, stated: dict[str, str], caches: tuple[str, ...] | None) -> str:
    for role, own in stated.items():
        if name == own:
            return role
    for role, usual in USUAL.items():
        if role not in stated and name in usual:
            return role
    return CACHE if caches is None or name in caches else ""


def _shape(spec: TensorSpec) -> str:
    return str(list(spec.shape))
