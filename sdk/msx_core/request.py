"""One request of a batch, as the worker receives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from msx_core.bodies import Input, ReadsPart, lenient, raw
from msx_core.form_fields import FormFields
from msx_core.references import SharedValues
from msx_core.reply_credit import UNLIMITED, ReplyCredit
from msx_core.results import encode

__all__ = ["Headers", "InferenceRequest", "Part"]


class Part(msgspec.Struct, frozen=True):
    """One field of a request: its bytes, and its content type.

    `content_type` is "" if the client could have stated one and did not: the body of an HTTP request. It is None if the
    client could not: an input over gRPC, a plain field of a form.
    """

    data: bytes | bytearray
    content_type: str | None = None


class Headers(dict[str, Any]):
    """Request headers; look-ups ignore case, as in HTTP.

    As in TorchServe, a field with a content type is there, too: `{"body": {"content-type": "image/png"}}`.
    """

    def __missing__(self, key: str) -> Any:
        wanted = key.lower()
        for name, value in self.items():
            if name.lower() == wanted:
                return value
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None


class InferenceRequest(ReplyCredit):
    """A request: its id, headers, fields, deadline (a `time.monotonic()` instant) and cancel flag.

    `answered`: its reply has ended; who sends replies says so.
    `operation` is "" for a prediction, `msx_sdk.kserve.INFER`, or one of `msx_core.generation`.
    """

    __slots__ = (
        "_data",
        "_decoded",
        "_headers",
        "_read_part",
        "_spent",
        "answered",
        "cancelled",
        "deadline",
        "encoder",
        "id",
        "input",
        "number",
        "operation",
        "parts",
        "shared",
    )

    def __init__(
        self,
        id: str,
        parts: Mapping[str, Part],
        headers: Headers | Callable[[], Headers] | None = None,
        *,
        number: int = 0,
        deadline: float | None = None,
        operation: str = "",
    ) -> None:
        self.id = id
        self.number = number
        self.operation = operation
        self.parts = parts
        self._headers = Headers() if headers is None else headers
        self.deadline = deadline
        self.cancelled = self.answered = False
        self.credit, self.sent, self._watchers = UNLIMITED, 0, ()  # as in ReplyCredit
        self.shared: SharedValues | None = None
        """Shared memory for large values, in a stage's worker."""
        self.input: Input | None = None
        """The request as it was read ahead of the handler, where that is not done as for every prediction."""
        self.encoder: Callable[[Any], bytes] | None = None
        """Makes the bytes of a reply, where that is not done as for every prediction."""
        self._data: dict[str, Any] | None = None
        self._decoded: dict[str, Any] | None = None
        self._read_part: ReadsPart | None = None
        self._spent = False

    @classmethod
    def of_data(cls, id: str, data: dict[str, Any]) -> InferenceRequest:
        """A request whose fields are already decoded: for warm-up and tests."""
        request = cls(id, {})
        request._data = data
        return request

    @property
    def headers(self) -> Headers:
        """Decoded at the first use: most handlers never look at them."""
        if not isinstance(self._headers, Headers):
            self._headers = self._headers()
        return self._headers

    @headers.setter
    def headers(self, headers: Headers) -> None:
        self._headers = headers

    @property
    def is_example(self) -> bool:
        """True if it was made by `of_data`, and did not come from a client."""
        return self._data is not None

    @property
    def example(self) -> dict[str, Any] | None:
        """The inputs of a request that was made by `of_data`."""
        return self._data

    @property
    def is_spent(self) -> bool:
        """The handler has seen the inputs in an earlier call."""
        return self._spent

    def spend(self) -> None:
        """The handler has seen the inputs; the next calls get an empty dict."""
        self.parts, self._spent = {}, True

    def decode(self, read: ReadsPart | None) -> dict[str, Any]:
        """Decodes the fields before `data()` returns them: by `read`, which may refuse them, else by `lenient`.

        Raises InvalidInput.
        """
        self._read_part = read
        self._decoded = self.data()
        return self._decoded

    def data(self, decode: bool = True) -> dict[str, Any]:
        """Field name to value, decoded as TorchServe does (JSON and text; everything else a bytearray).

        A new dict at each call: a handler may change it, and be called again when its batch failed.
        """
        if self._decoded is not None:
            decoded, self._decoded = self._decoded, None
            return decoded
        if self._spent:
            return {}
        if self.input is not None and (decode or not self.input.is_json):
            made: dict[str, Any] = self.input.data()
            return made
        if self._data is not None:
            return dict(self._data)
        fields = self._fields(decode)
        return fields if "body" in fields else FormFields(fields, self._content_type)

    def _fields(self, decode: bool) -> dict[str, Any]:
        if not decode:
            return {name: raw(part.data) for name, part in self.parts.items()}
        if (read := self._read_part) is not None:
            resolve = self.shared.resolve if self.shared is not None and self.shared.keys else None
            return {name: read(name, part.data, part.content_type, resolve) for name, part in self.parts.items()}
        return {name: lenient(part.data, part.content_type) for name, part in self.parts.items()}

    def _content_type(self) -> str:
        stated = self.headers.get("content-type")
        return stated if isinstance(stated, str) else ""  # a field of a form may have the same name

    def writable(self) -> dict[str, Any]:
        """`data()` once more, with arrays of its own where those of `data()` stand in shared memory."""
        read = self._read_part
        if read is None or self._spent or self.shared is None:
            return self.data()
        resolve = self.shared.resolve_copy
        return {name: read(name, part.data, part.content_type, resolve) for name, part in self.parts.items()}

    def encode(self, value: Any, status: int) -> bytes | bytearray:
        """Encodes a value of the reply. Raises PredictionError for a value that cannot be sent."""
        return encode(value) if self.encoder is None or status >= 400 else self.encoder(value)
