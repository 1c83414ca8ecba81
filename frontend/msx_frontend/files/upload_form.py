"""The form of an upload, read piece by piece: small fields, and one file that is handed on as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from msx_core.form_fields import MULTIPART
from msx_core.service_errors import BadRequest

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FILE = "file"
MOST_FIELDS, LONGEST_FIELD, LONGEST_HEADERS = 20, 1000, 8000
"""Parts of a form, bytes of one beside the file, and bytes of a part's headers."""


class UploadForm:
    """`filename` is None until the file has begun."""

    def __init__(self, content_type: bytes) -> None:
        """Raises BadRequest for what is no multipart/form-data."""
        kind, options = parse_options_header(content_type)
        if kind != MULTIPART.encode() or not options.get(b"boundary"):
            raise BadRequest("Expected multipart/form-data with the fields purpose and file.")
        self.fields: dict[str, str] = {}
        self.filename: str | None = None
        self._ended = False
        self._count = self._size = 0
        self._name, self._value, self._headers = bytearray(), bytearray(), dict[bytes, bytes]()
        self._field, self._data, self._content = "", bytearray(), bytearray()
        with _told():
            self._parser = MultipartParser(options[b"boundary"], self._callbacks())

    def feed(self, data: bytes) -> bytes:
        """-> the bytes of the file in this piece of the body. Raises BadRequest."""
        with _told():
            self._parser.write(data)
        content = bytes(self._content)
        self._content.clear()
        return content

    def end(self) -> None:
        """The body is complete. Raises BadRequest."""
        if not self._ended:
            raise BadRequest("The multipart/form-data body is malformed: it ends without its closing boundary.")
        if self.filename is None:
            raise BadRequest("file: needed, as a part of the form.")

    # -- what the parser calls --

    def _callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._part_begins,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_ends,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._part_data,
            "on_part_end": self._part_ends,
            "on_end": self._ends,
        }

    def _part_begins(self) -> None:
        self._count += 1
        if self._count > MOST_FIELDS:
            raise BadRequest(f"The form has more than {MOST_FIELDS} parts.")
        self._size = 0
        self._headers = {}
        self._data.clear()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._add(self._name, data[start:end], LONGEST_HEADERS, "The headers of a part")

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._add(self._value, data[start:end], LONGEST_HEADERS, "The headers of a part")

    def _header_ends(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _headers_end(self) -> None:
        self._size = 0
        options = parse_options_header(self._headers.get(b"content-disposition", b""))[1]
        name = options.get(b"name")
        if name is None:
            raise BadRequest("The multipart/form-data body is malformed: a part has no name in Content-Disposition.")
        self._field = name.decode("utf-8", "replace")
        if self._field == FILE:
            if self.filename is not None:
                raise BadRequest("file: expected one file, not several.")
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._field == FILE:
            self._content += data[start:end]
        else:
            self._add(self._data, data[start:end], LONGEST_FIELD, f"{self._field[:40]}: the field")

    def _part_ends(self) -> None:
        if self._field != FILE:
            self.fields[self._field] = self._data.decode("utf-8", "replace")

    def _ends(self) -> None:
        self._ended = True

    def _add(self, to: bytearray, data: bytes, most: int, what: str) -> None:
        self._size += len(data)
        if self._size > most:
            raise BadRequest(f"{what} may have at most {most} bytes.")
        to += data


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except FormParserError as error:
        raise BadRequest(f"The multipart/form-data body is malformed: {error}.") from None
