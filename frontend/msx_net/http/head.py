"""The head of an HTTP request, read once: where it goes, and the few headers that steer it."""

from __future__ import annotations

from msx_net.http.wire import RawHeaders


class Head:
    """It does not depend on the time at which it came, so that a connection may keep the last one."""

    __slots__ = (
        "_texts",
        "authorization",
        "content_encoding",
        "content_length",
        "content_type",
        "given_id",
        "http_version",
        "keeps_alive",
        "method",
        "path",
        "prefer",
        "query",
        "raw_headers",
        "raw_path",
    )

    def __init__(
        self, method: str, path: str, raw_path: bytes, query: bytes, headers: RawHeaders, http_version: str
    ) -> None:
        """`path` is decoded; names of headers are in lower case."""
        self.method, self.path, self.raw_path, self.query = method, path, raw_path, query
        self.raw_headers, self.http_version = headers, http_version
        self.content_type = b""
        self.content_length: int | None = None
        self.content_encoding = ""
        """The encoding in lower case; empty if the body is sent as it is."""
        self.authorization: str | None = None
        """The header of this name, or a key in `x-api-key`, as Anthropic's clients send it."""
        self.keeps_alive = http_version != "1.0"
        self.given_id: bytes | None = None
        self.prefer = b""
        """The preferences of RFC 7240, of all headers of this name."""
        self._texts: list[tuple[str, str]] | None = None
        for name, value in headers:
            self._read(name, value)

    def _read(self, name: bytes, value: bytes) -> None:
        if name == b"content-type":
            self.content_type = value
        elif name == b"content-length" and value.isdigit():
            self.content_length = int(value)
        elif name == b"content-encoding":
            encoding = value.decode("latin-1").strip().lower()
            self.content_encoding = "" if encoding == "identity" else encoding
        elif name == b"authorization":
            self.authorization = value.decode("latin-1")
        elif name == b"x-api-key" and self.authorization is None:
            self.authorization = f"Bearer {value.decode('latin-1')}"
        elif name == b"connection":
            self.keeps_alive = self.keeps_alive and b"close" not in value.lower()
        elif name == b"x-request-id":
            self.given_id = value
        elif name == b"prefer":
            self.prefer = b"%b,%b" % (self.prefer, value) if self.prefer else value

    def headers(self) -> list[tuple[str, str]]:
        if self._texts is None:
            self._texts = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw_headers]
        return self._texts

    def header(self, name: bytes) -> str:
        """The header's value, "" if it is missing. `name` is in lower case."""
        return next((value.decode("latin-1") for known, value in self.raw_headers if known.lower() == name), "")

    @property
    def target(self) -> str:
        """Path and query as they were sent: percent-encoded, so that a line feed does not break the access log."""
        path = self.raw_path.decode("latin-1")
        return f"{path}?{self.query.decode('latin-1')}" if self.query else path

    @property
    def protocol(self) -> str:
        return "HTTP/2.0" if self.http_version == "2" else f"HTTP/{self.http_version}"  # as nginx and gRPC write it
