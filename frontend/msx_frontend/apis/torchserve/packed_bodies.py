"""Requests whose bodies have a Content-Encoding, which TorchServe's family passes on as they are."""

from __future__ import annotations

from typing import Protocol

from msx_net.http.family import JobTemplate, ReplySink
from msx_net.keys import ClientKey


class AsksService(JobTemplate, Protocol):
    def takes_packed(self, encoding: str) -> bool:
        """The service wants bodies decompressed. Raises CompressionSwitchedOff where it cannot read others."""


class PackedBodies:
    """Stands around the template of a head that states an encoding: each request's service is asked."""

    def __init__(self, inner: AsksService, encoding: str) -> None:
        self._inner, self._encoding = inner, encoding

    @property
    def key(self) -> ClientKey | None:
        return self._inner.key

    @key.setter
    def key(self, key: ClientKey | None) -> None:
        self._inner.key = key

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        if body and self._inner.takes_packed(self._encoding):
            sink.unpack(body, self._encoding, lambda data: self._inner.submit(id, data, sink))
        else:
            self._inner.submit(id, body, sink)


def around(inner: AsksService, encoding: str) -> JobTemplate:
    """The template itself where the head states no encoding."""
    return PackedBodies(inner, encoding) if encoding else inner
