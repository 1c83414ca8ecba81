"""Calls over HTTP, one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpx

from msx_client.address import Address
from msx_client.call import HttpCall, Reply
from msx_client.errors import MsxError
from msx_client.http.connections import LARGEST_ERROR, Wiring, reply_of, request_of, translated
from msx_client.http.content import failure
from msx_client.keys import Keys

T = TypeVar("T")


class HttpTransport:
    """Raises MsxError."""

    def __init__(self, address: Address, keys: Keys, wiring: Wiring) -> None:
        self._address, self._keys, self._wiring = address, keys, wiring
        self._client = httpx.Client(**wiring.options(http2=wiring.http2))
        self._streams = httpx.Client(**wiring.options(http2=False)) if wiring.http2 else self._client

    def run(self, call: HttpCall[T], timeout: float | None) -> T:
        with self._errors(call, timeout):
            response = self._client.send(self._request(call, timeout))
        reply = reply_of(response)
        if reply.status >= 400:
            raise failure(reply)
        assert call.read is not None
        return call.read(reply)

    def stream(self, call: HttpCall[T], timeout: float | None) -> Iterator[T]:
        assert call.decoder is not None
        decoder = call.decoder()
        with self._errors(call, timeout):
            response = self._streams.send(self._request(call, timeout), stream=True)
            try:
                if response.status_code >= 400:
                    raise failure(_beginning(response))
                for data in response.iter_bytes():
                    yield from decoder.feed(data)
                decoder.end()
            finally:
                response.close()

    def close(self) -> None:
        self._client.close()
        self._streams.close()

    def _request(self, call: HttpCall[T], timeout: float | None) -> httpx.Request:
        arguments = request_of(call, self._address.of(call.part), self._keys.of(call.part))
        return self._client.build_request(**arguments, timeout=self._wiring.limits(timeout))

    @contextmanager
    def _errors(self, call: HttpCall[T], timeout: float | None) -> Iterator[None]:
        try:
            yield
        except MsxError:
            raise
        except httpx.HTTPError as error:
            limit = self._wiring.timeout if timeout is None else timeout
            raise translated(error, self._address.of(call.part), limit) from error


def _beginning(response: httpx.Response) -> Reply:
    content = b""
    for data in response.iter_bytes():
        content += data
        if len(content) > LARGEST_ERROR:
            break
    return Reply(response.status_code, response.headers, content[:LARGEST_ERROR])
