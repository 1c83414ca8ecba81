"""Where a listener listens: `http://127.0.0.1:8080`, `https://host:port` or `unix:/path`."""

from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

_LONGEST_UNIX_PATH = 107  # bytes; the kernel's sockaddr_un has 108 with the closing zero


@dataclass(frozen=True)
class Address:
    scheme: Literal["http", "https", "unix"]
    host: str = ""
    port: int | None = None  # None: not given; 0: any free port
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Raises ValueError, which says what is wrong with the text."""
        if text.startswith("unix:"):
            return _unix(text.removeprefix("unix:"))
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https"):
            raise ValueError("has no scheme http://, https:// or unix:")
        if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("has more than a host and a port")
        if not parts.hostname:
            raise ValueError("has no host")
        return cls("https" if parts.scheme == "https" else "http", parts.hostname, parts.port)

    def with_port(self, port: int | None) -> "Address":
        return replace(self, port=port)

    @property
    def is_unix(self) -> bool:
        return self.scheme == "unix"

    def __str__(self) -> str:
        if self.is_unix:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port is None else f":{self.port}")


def _unix(path: str) -> Address:
    if not path:
        raise ValueError("has no path")
    if len(path.encode()) > _LONGEST_UNIX_PATH:
        raise ValueError(f"has a path of more than {_LONGEST_UNIX_PATH} bytes, the system's limit")
    return Address("unix", path=path)
