"""Objects of one type: from JSON, MessagePack and plain values, and the JSON schema."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol, get_type_hints

import msgspec

from msx_core.bodies import json_value
from msx_core.elements import ElementLimit, TooManyElements, check_json, check_msgpack
from msx_core.errors import HandlerLoadError
from msx_core.json_schema import MOST_LEVELS, too_deep
from msx_core.packed import sent_extension, unpack_sent
from msx_core.typed import faults
from msx_core.typed.arrays import array_of, is_array
from msx_core.typed.base64_members import MOST, compacted, is_base64_fault
from msx_core.typed.hints import alternatives, is_pydantic
from msx_core.typed.schemas import is_closed, schema_of

Data = bytes | bytearray


class Misfit(ValueError):
    """A value does not fit the type; the message names the member's path, what was expected and what came."""


class Codec(Protocol):
    """Reads objects of one type. Each method raises Misfit, or ValueError for bytes that are not of the format."""

    @property
    def members(self) -> Mapping[str, Any]:
        """The types of its members, by the names that they have in a body."""

    def from_json(self, data: Data) -> Any: ...

    def from_msgpack(self, data: Data) -> Any: ...

    def convert(self, value: Any, *, strict: bool = True) -> Any:
        """Make an object from plain values. Without `strict` a text may stand for a number or a truth value, as in a
        form."""


def codec_of(kind: Any, where: str) -> Codec:
    """`where` names the function whose hint it is. Raises HandlerLoadError for a type that no body can have."""
    try:
        return _Pydantic(kind) if any(map(is_pydantic, alternatives(kind))) else _Msgspec(kind)
    except (TypeError, NameError, AttributeError, ValueError, RuntimeError) as error:
        raise HandlerLoadError(
            f"{where} takes {name_of(kind)}, which cannot be read from JSON or MessagePack: {error}"
        ) from None


def name_of(kind: Any) -> str:
    return " or ".join(getattr(one, "__name__", str(one)) for one in alternatives(kind))


class _Msgspec:
    """Codec of dataclasses and structs."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._json = msgspec.json.Decoder(kind, dec_hook=_foreign)
        self._msgpack = msgspec.msgpack.Decoder(kind, dec_hook=_foreign, ext_hook=sent_extension)
        self.members = {name: hint for one in alternatives(kind) for name, hint in _members(one)}
        schema = schema_of(kind)
        self._closed = schema is not None and is_closed(schema)

    def from_json(self, data: Data) -> Any:
        if len(data) > ElementLimit.most:
            _check_elements(check_json, data)
        if not self._closed and data.count(b"[") + data.count(b"{") > MOST_LEVELS:
            return self.convert(json_value(data))
        try:
            return self._json.decode(data)
        except msgspec.DecodeError:
            return self.convert(json_value(data))  # it names what came; and NaN, which Python's clients send

    def from_msgpack(self, data: Data) -> Any:
        if len(data) > ElementLimit.most:
            _check_elements(check_msgpack, data)
        if not self._closed:
            return self.convert(unpack_sent(data))
        try:
            return self._msgpack.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return self.convert(unpack_sent(data))  # it says what came, or what is wrong with the bytes

    def convert(self, value: Any, *, strict: bool = True) -> Any:
        _check_depth(value)
        for _ in range(MOST):
            try:
                return msgspec.convert(value, self._kind, strict=strict, dec_hook=_foreign, str_keys=True)
            except msgspec.ValidationError as error:
                if not is_base64_fault(error) or (again := compacted(value, error)) == value:
                    raise Misfit(faults.of_msgspec(error, value)) from None
                value = again
        raise Misfit(f"more than {MOST} members have base64 with white space")


class _Pydantic:
    def __init__(self, kind: Any) -> None:
        from pydantic import TypeAdapter, ValidationError

        self._adapter: Any = TypeAdapter(kind)
        self._error = ValidationError
        self.members = {name: hint for one in alternatives(kind) for name, hint in _members(one)}

    def from_json(self, data: Data) -> Any:
        _check_elements(check_json, data)
        try:
            return self._adapter.validate_json(bytes(data))
        except self._error as error:
            json_value(data)  # raises what is said of any JSON that is malformed
            raise self._misfit(error) from None

    def from_msgpack(self, data: Data) -> Any:
        _check_elements(check_msgpack, data)
        return self.convert(unpack_sent(data))

    def convert(self, value: Any, *, strict: bool = True) -> Any:
        _check_depth(value)
        try:
            return self._adapter.validate_python(value)
        except self._error as error:
            raise self._misfit(error) from None

    def _misfit(self, error: Any) -> Misfit:
        return Misfit(faults.of_pydantic_error(error))


def _check_elements(check: Callable[[Data], None], data: Data) -> None:
    try:
        check(data)
    except TooManyElements as error:
        raise Misfit(str(error)) from None


def _check_depth(value: Any) -> None:
    if too_deep(value):
        raise Misfit(f"it is nested more than {MOST_LEVELS} levels deep")


def _foreign(kind: Any, value: Any) -> Any:
    """The `dec_hook` of msgspec: what it does not know. It wraps ValueError and TypeError, and adds the path."""
    if is_array(kind):
        return array_of(kind, value)
    if is_pydantic(kind):
        return _validated(kind, value)
    if isinstance(value, kind if isinstance(kind, type) else ()):
        return value
    raise TypeError(f"a member of the type {kind} cannot be read from JSON or MessagePack")


def _validated(kind: Any, value: Any) -> Any:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(faults.of_pydantic_error(error)) from None


def _members(kind: Any) -> list[tuple[str, Any]]:
    if hasattr(kind, "model_fields"):
        return [(field.alias or name, field.annotation) for name, field in kind.model_fields.items()]
    plain = getattr(kind, "__origin__", kind)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return [(field.encode_name, field.type) for field in msgspec.structs.fields(kind)]
    hints = get_type_hints(plain)
    return [(field.name, hints[field.name]) for field in dataclasses.fields(plain)]
