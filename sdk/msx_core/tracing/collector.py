"""The connection to a collector: OTLP over HTTP, as OpenTelemetry's variables describe it.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

import gzip
import http.client
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from msx_core.tracing.variables import ENDPOINT, OF_TRACES

LIMIT = 10.0
"""Seconds for one request: OTEL_EXPORTER_OTLP_TIMEOUT, in milliseconds."""
AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which a client may ask again."""
MOST_READ = 64 << 10
"""Bytes of a reply."""


class SpansRefused(Exception):
    """The collector has not taken the spans. `again`: it may take them later."""

    def __init__(self, message: str, *, again: bool) -> None:
        super().__init__(message)
        self.again = again


class Collector:
    """Not safe for several threads."""

    def __init__(self, endpoint: str, env: Mapping[str, str]) -> None:
        """`endpoint` goes before those of the environment; /v1/traces is added to it. Raises ValueError."""
        self.url = _url(endpoint, env)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{without_secrets(self.url)!r} is not a URL of http or https")
        self.shown = without_secrets(self.url)
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._gzip = _setting("COMPRESSION", env) == "gzip"
        self._headers = {"content-type": "application/json", **_headers(_setting("HEADERS", env))}
        if self._gzip:
            self._headers["content-encoding"] = "gzip"
        options: dict[str, Any] = {"timeout": float(_setting("TIMEOUT", env) or LIMIT * 1000) / 1000}
        made: type[http.client.HTTPConnection] = http.client.HTTPConnection
        if parts.scheme == "https":
            made = http.client.HTTPSConnection
            options["context"] = _tls(env)
        self._connection = made(parts.hostname, parts.port, **options)

    def send(self, body: bytes) -> None:
        """Raises SpansRefused."""
        try:
            self._connection.request("POST", self._path, gzip.compress(body, 1) if self._gzip else body, self._headers)
            reply = self._connection.getresponse()
            status = reply.status
            reply.read(MOST_READ)
            if not reply.isclosed():
                self._connection.close()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise SpansRefused(f"{type(error).__name__}: {error}", again=True) from None
        if not 200 <= status < 300:
            raise SpansRefused(f"it answered {status}", again=status in AGAIN)

    def close(self) -> None:
        self._connection.close()


def without_secrets(url: str) -> str:
    """Leave out user, password and query, which may be secrets: for messages."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _url(endpoint: str, env: Mapping[str, str]) -> str:
    if not endpoint and (own := env.get(OF_TRACES, "").strip()):
        return own
    return f"{(endpoint or env.get(ENDPOINT, '')).strip().rstrip('/')}/v1/traces"


def _setting(name: str, env: Mapping[str, str]) -> str:
    return (env.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or env.get(f"OTEL_EXPORTER_OTLP_{name}") or "").strip()


def _headers(text: str) -> dict[str, str]:
    """`name=value` pairs with commas between them, whose values are URL-encoded."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


def _tls(env: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=_setting("CERTIFICATE", env) or None)
    if certificate := _setting("CLIENT_CERTIFICATE", env):
        context.load_cert_chain(certificate, _setting("CLIENT_KEY", env) or None)
    return context
