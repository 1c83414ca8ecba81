"""Where a server is: its inference and its management address, of one protocol."""

import os
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Part = Literal["inference", "management"]

URL, MANAGEMENT_URL = "MSX_URL", "MSX_MANAGEMENT_URL"
"""Environment variables."""

DEFAULT = "http://127.0.0.1:8080"
_MANAGEMENT_PORTS = {8080: 8081, 8443: 8444, 7070: 7071}
"""Management ports by the inference port, where it is a default one: else one address is for both."""
_PORTS = {"http": 8080, "https": 8443, "grpc": 7070, "grpcs": 7070}


@dataclass(frozen=True)
class Address:
    """`inference` and `management` are URLs without a path over HTTP, `host:port` over gRPC."""

    inference: str
    management: str
    grpc: bool
    secure: bool

    def of(self, part: Part) -> str:
        return self.inference if part == "inference" else self.management


def address_of(url: str | None, management_url: str | None) -> Address:
    """Take the addresses from arguments, else the environment, else the server's own defaults. Raises ValueError."""
    url = url or os.environ.get(URL) or DEFAULT
    scheme, host, port = _split(url)
    management_url = management_url or os.environ.get(MANAGEMENT_URL)
    if management_url:
        other, management_host, management_port = _split(management_url)
        if other != scheme:
            raise ValueError(
                f"{management_url}: the management address speaks {other}, the inference address {scheme}."
            )
    else:
        management_host, management_port = host, _MANAGEMENT_PORTS.get(port, port)
    grpc = scheme.startswith("grpc")
    prefix = "" if grpc else f"{scheme}://"
    return Address(
        f"{prefix}{host}:{port}", f"{prefix}{management_host}:{management_port}", grpc, scheme in ("https", "grpcs")
    )


def _split(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"{url!r} is not an address: http://host:port, https://…, grpc://host:port or grpcs://….")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, host, parts.port or _PORTS[parts.scheme]
