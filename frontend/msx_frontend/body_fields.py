"""The way from a request's bytes to the fields of a job. Every API that takes free-form bodies uses it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from msx_core.form_fields import FORM, FORM_ADVICE, MULTIPART
from msx_core.service_errors import BadRequest
from msx_frontend.job import Field

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

NPY_MAGIC = b"\x93NUMPY"
MOST_FIELDS = 1000
"""The most fields of one form: parsing more would hold up other requests."""


def parse_fields(content_type: bytes, body: bytes) -> list[Field]:
    """TorchServe's rule: a form has a field a name (the last of a name wins), anything else is one field `body`.

    A raw body without a type says so by "", because its client could have stated one; plain fields of forms have None.
    Multipart without a boundary is a raw body, and so is an npy file, whatever type its client states without asking
    (curl's and urllib's is a form's). Raises BadRequest for multipart that breaks off or breaks its rules,
    and for more than MOST_FIELDS fields.
    """
    return fields_parser(content_type)(body)


def fields_parser(content_type: bytes, whole: Callable[[], bool] | None = None) -> Callable[[bytes], list[Field]]:
    """`parse_fields` for all bodies of one type. `whole` is asked of each form whether it is left in one piece."""
    parse = _parser(content_type)
    if whole is None or parse.func is _raw:
        return parse
    return partial(_unless_whole, whole, parse)


def _unless_whole(whole: Callable[[], bool], parse: Callable[[bytes], list[Field]], body: bytes) -> list[Field]:
    return _raw("", body) if whole() else parse(body)


def _parser(content_type: bytes) -> partial[list[Field]]:
    kind = content_type.partition(b";")[0].strip().lower()
    if kind == MULTIPART.encode():
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if boundary:
            return partial(_multipart, boundary)
    if kind == FORM.encode():
        return partial(_form_or_npy, content_type.decode("latin-1"))
    return partial(_raw, content_type.decode("latin-1"))


def _raw(content_type: str, body: bytes) -> list[Field]:
    return [Field("body", content_type, body)]


def _form_or_npy(content_type: str, body: bytes) -> list[Field]:
    return _raw(content_type, body) if body.startswith(NPY_MAGIC) else form_fields(body)


def fields_of_query(query: bytes) -> list[Field]:
    return form_fields(query)


def merge_fields(*groups: list[Field]) -> list[Field]:
    """Merge the groups; the last field of a name wins."""
    return list({field.name: field for group in groups for field in group}.values())


def form_fields(body: bytes) -> list[Field]:
    """The fields of a form whose type is application/x-www-form-urlencoded. Raises BadRequest."""
    if body.count(b"&") >= MOST_FIELDS:
        raise _too_many(f" {FORM_ADVICE}")
    text = body.decode("utf-8", "surrogateescape")
    pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="surrogateescape")
    return merge_fields([_form_field(name, value) for name, value in pairs])


def _form_field(name: str, value: str) -> Field:
    """A value may be any bytes; a name is text, which is what the worker is sent."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Field(text, None, value.encode("utf-8", "surrogateescape"))


def _too_many(advice: str = "") -> BadRequest:
    return BadRequest(f"The form has more than {MOST_FIELDS} fields; send that many values as one JSON body.{advice}")


def _multipart(boundary: bytes, body: bytes) -> list[Field]:
    parts = _Parts()
    try:
        parser = MultipartParser(boundary, parts.callbacks())
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise BadRequest(f"The multipart/form-data body is malformed: {error}.") from None
    if not parts.ended:
        raise BadRequest(
            "The multipart/form-data body is malformed: it ends without its closing boundary "
            f"--{boundary.decode('latin-1')}--."
        )
    return list(parts.fields.values())


class _Parts:
    """Collects what the parser finds. A file keeps its content type, a plain field has none (TorchServe)."""

    def __init__(self) -> None:
        self.fields: dict[str, Field] = {}
        self.ended = False
        self._count = 0
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._data = bytearray()

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._part_data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._count += 1
        if self._count > MOST_FIELDS:
            raise _too_many()
        self._headers, self._data = {}, bytearray()
        self._name = self._value = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        self._data += data[start:end]

    def _part_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name")
        if name is None:
            raise BadRequest("The multipart/form-data body is malformed: a part has no name in Content-Disposition.")
        kind = self._headers.get(b"content-type") if b"filename" in options else None
        key = name.decode("utf-8", "replace")
        self.fields[key] = Field(key, kind.decode("latin-1") if kind else None, bytes(self._data))

    def _end(self) -> None:
        self.ended = True
