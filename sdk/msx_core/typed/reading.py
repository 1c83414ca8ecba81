"""Reads the typed requests of one function of a handler, and encodes its replies."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from msx_core.bodies import fault, json_value, malformed, says_json
from msx_core.elements import TooManyElements, check_msgpack
from msx_core.errors import InvalidInput, PredictionError
from msx_core.form_fields import FORM_ADVICE, is_form
from msx_core.packed import PACKED, InvalidPacked, Resolve, unpack, unpack_sent
from msx_core.typed.arrays import is_array
from msx_core.typed.codec import Codec, Misfit
from msx_core.typed.media import MSGPACK, says_msgpack

if TYPE_CHECKING:
    from msx_core.kserve.inference import Inference
    from msx_core.request import Part

DOCUMENTS = ("body", "data")
"""Fields that hold a whole request: a body has the first name, and gRPC's clients use both."""

_RAW = (bytes, bytearray, str)
_PLAIN = (*_RAW, dict, list, int, float, type(None))

TAKES = f"application/json or {MSGPACK[0]}"


class TypedExample:
    """The object of a warm-up: as it is, or made of plain values."""

    is_json = False

    def __init__(self, codec: Codec, example: Mapping[str, Any]) -> None:
        """Raises InvalidInput."""
        self._codec = codec
        self._read = self._made(example)

    def data(self) -> Any:
        return self._read

    def _made(self, example: Mapping[str, Any]) -> Any:
        value: Any = example
        if [*example] == ["body"] and "body" not in self._codec.members:
            value = example["body"]
        if not isinstance(value, _PLAIN):
            return value
        try:
            return self._codec.from_json(_bytes(value)) if isinstance(value, _RAW) else self._codec.convert(value)
        except ValueError as error:
            raise InvalidInput(f"The example does not fit: {error}") from None


class TypedInference:
    """A request of the Open Inference Protocol, for a type that has a member `inputs`."""

    def __init__(self, codec: Codec, name: str, inference: Inference) -> None:
        """Raises PredictionError."""
        if "inputs" not in codec.members:
            raise PredictionError(
                501, f"This model takes {name}, not tensors: send {TAKES} to /predictions/ and the model's name."
            )
        self._codec, self._name, self._inference = codec, name, inference
        self.is_json = False

    def data(self) -> Any:
        try:
            return self._codec.convert(self._inference.body())
        except Misfit as misfit:
            raise InvalidInput(f"The request does not fit {self._name}: {misfit}.") from None


class TypedInput:
    """The object that a request's fields make. `name` is the type's, for messages."""

    is_json = False

    def __init__(
        self,
        codec: Codec,
        name: str,
        parts: Mapping[str, Part],
        resolve: Resolve | None = None,
        *,
        declared: bool = False,
    ) -> None:
        """`resolve` is for references to shared memory, between stages. `declared`: the service says what bodies are,
        whatever their clients state.

        Raises InvalidInput, which names the member's path, what was expected and what came.
        """
        self._codec, self._name, self._parts, self._resolve = codec, name, parts, resolve
        self._declared = declared
        self._read: Any = self._made()
        self._fresh = True

    def data(self) -> Any:
        """A new object at each call: a handler may change it, and is called again if its batch failed."""
        made = self._read if self._fresh else self._made()
        self._read, self._fresh = None, False
        return made

    def _made(self) -> Any:
        if not self._parts:
            raise InvalidInput(f"The request is empty: this model takes {self._name} as {TAKES}.")
        try:
            if (document := self._document()) is not None:
                return self._of_document(*document)
            return self._codec.convert(self._of_fields(), strict=False)
        except Misfit as misfit:
            raise InvalidInput(f"The request does not fit {self._name}: {misfit}.{self._hint()}") from None

    def _document(self) -> tuple[str, Part] | None:
        """The only field, if it is a whole request and not a member."""
        if len(self._parts) != 1:
            return None
        ((name, part),) = self._parts.items()
        is_body = name == "body" and part.content_type is not None and part.content_type != PACKED
        return (name, part) if is_body or name not in self._codec.members else None

    def _of_document(self, field: str, part: Part) -> Any:
        kind, data = part.content_type or "", part.data
        if kind == PACKED:
            return self._codec.convert(_unpacked(field, data, self._resolve))
        if kind and says_msgpack(kind):
            return self._parsed(f"{field} ({kind[:100]}) is", "MessagePack", self._codec.from_msgpack, data)
        if kind and not says_json(kind):
            raise PredictionError(415, f"{field}: this model does not read {kind[:100]}; send {TAKES}.")
        stated = f"({kind[:100]}) is" if kind else "came without a content type and is"
        return self._parsed(f"{field} {stated}", "JSON", self._codec.from_json, data)

    def _parsed(self, stated: str, form: str, parse: Any, data: bytes | bytearray) -> Any:
        try:
            return parse(data)
        except Misfit:
            raise
        except (ValueError, RecursionError) as error:
            remedy = (
                f"This service takes {form} (bodies:), whatever type is stated" if self._declared else f"Send {TAKES}"
            )
            raise InvalidInput(f"{stated} not valid {form}: {fault(data, error)}. {remedy}.{self._hint()}") from None

    def _of_fields(self) -> dict[str, Any]:
        members = self._codec.members
        return {name: _value(name, part, members.get(name), self._resolve) for name, part in self._parts.items()}

    def _hint(self) -> str:
        """Curl and urllib state a form's type unless they are told another one."""
        if "body" in self._parts or is_form({name: part.data for name, part in self._parts.items()}):
            return ""
        return f" {FORM_ADVICE}"


def _value(name: str, part: Part, kind: Any, resolve: Resolve | None) -> Any:
    """A field's value by its content type; without one by what the member is."""
    stated, data = part.content_type, part.data
    if stated == PACKED:
        return _listed(_unpacked(name, data, resolve), kind)
    if stated and says_json(stated):
        return _json(name, data)
    if stated and says_msgpack(stated):
        return _sent(name, data)
    if _takes(kind, bytes, bytearray):
        return bytes(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Misfit(f"{name}: expected text, got bytes that are not UTF-8") from None
    return text if _takes(kind, str) else _plain(text)


def _plain(text: str) -> Any:
    try:
        return json_value(text.encode())
    except (ValueError, RecursionError):
        return text


def _json(name: str, data: bytes | bytearray) -> Any:
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        raise Misfit(malformed(name, data, error)) from None


def _unpacked(name: str, data: bytes | bytearray, resolve: Resolve | None = None) -> Any:
    try:
        if resolve is None:  # it comes from a client, not from a stage of the same model
            check_msgpack(data)
        return unpack(data, resolve=resolve)
    except (InvalidPacked, TooManyElements) as error:
        raise Misfit(malformed(name, data, error, "MessagePack")) from None


def _sent(name: str, data: bytes | bytearray) -> Any:
    try:
        check_msgpack(data)
        return unpack_sent(data)
    except (InvalidPacked, TooManyElements) as error:
        raise Misfit(malformed(name, data, error, "MessagePack")) from None


def _listed(value: Any, kind: Any) -> Any:
    """An array that comes from another process, where the member is not one."""
    return value if is_array(kind) or not hasattr(value, "tolist") else value.tolist()


def _takes(kind: Any, *wanted: type) -> bool:
    """Whether one of `wanted` is the type, or among its alternatives."""
    inner = get_args(kind) if get_origin(kind) in (Union, types.UnionType, Annotated) else ()
    return kind in wanted or any(_takes(one, *wanted) for one in inner)


def _bytes(value: bytes | bytearray | str) -> bytes | bytearray:
    return value.encode() if isinstance(value, str) else value
