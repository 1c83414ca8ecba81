"""Parts of a client, by its address: the calls and the transport of one protocol, which imports the library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from msx_client.address import Address, Part, address_of
from msx_client.errors import MsxError, UnauthorizedError
from msx_client.job_maker import JobMaker
from msx_client.keys import Keys
from msx_client.retry import Attempts

if TYPE_CHECKING:
    from msx_client.http.calls import HttpCalls


class _Attempts:
    """Tries of a call: a refused one is made once more where the key file has changed meanwhile."""

    def __init__(self, attempts: Attempts, keys: Keys, part: Part) -> None:
        self._attempts, self._keys, self._part = attempts, keys, part
        self._renewed = False

    def pause(self, error: MsxError) -> float | None:
        if isinstance(error, UnauthorizedError) and not self._renewed:
            self._renewed = True
            return 0.0 if self._keys.renew(self._part) else None
        return self._attempts.pause(error)


@dataclass
class _Options:
    timeout: float
    connect_timeout: float
    retries: int
    connections: int
    http2: bool
    verify: bool | str
    headers: Mapping[str, str]


class Setup:
    """Raises ValueError, OSError."""

    def __init__(
        self,
        url: str | None,
        management_url: str | None,
        key: str | None,
        management_key: str | None,
        key_file: str | os.PathLike[str] | None,
        **options: Any,
    ) -> None:
        self.address: Address = address_of(url, management_url)
        self.keys = Keys(key, management_key, key_file)
        self._options = _Options(**options)

    @cached_property
    def calls(self) -> HttpCalls:
        """Or `RpcCalls`, which has the same methods."""
        return cast("HttpCalls", _LazyCalls(self.address.grpc))

    def job_maker(self, part: Part) -> JobMaker:
        return JobMaker(self.calls, part, grpc=self.address.grpc, timeout=self._options.timeout)

    def attempts(self, part: Part) -> _Attempts:
        return _Attempts(Attempts(self._options.retries), self.keys, part)

    def transport(self) -> Any:
        if self.address.grpc:
            from msx_client.grpc.transport import RpcTransport

            return RpcTransport(self.address, self.keys, self._channeling())
        from msx_client.http.transport import HttpTransport

        return HttpTransport(self.address, self.keys, self._wiring())

    def async_transport(self) -> Any:
        if self.address.grpc:
            from msx_client.grpc.async_transport import AsyncRpcTransport

            return AsyncRpcTransport(self.address, self.keys, self._channeling())
        from msx_client.http.async_transport import AsyncHttpTransport

        return AsyncHttpTransport(self.address, self.keys, self._wiring())

    def _wiring(self) -> Any:
        from msx_client.http.connections import Wiring

        own = self._options
        return Wiring(own.timeout, own.connect_timeout, own.connections, own.http2, own.verify, own.headers)

    def _channeling(self) -> Any:
        from msx_client.grpc.channels import Channeling, credentials

        own = self._options
        return Channeling(own.timeout, credentials(own.verify) if self.address.secure else None, own.headers)


class _LazyCalls:
    """The calls of the protocol, imported at the first one."""

    def __init__(self, grpc: bool) -> None:
        self._grpc = grpc

    def __getattr__(self, name: str) -> Any:
        if self._grpc:
            from msx_client.grpc.calls import RpcCalls

            calls: Any = RpcCalls()
        else:
            from msx_client.http.calls import HttpCalls

            calls = HttpCalls()
        method = getattr(calls, name)
        self.__dict__[name] = method
        return method
