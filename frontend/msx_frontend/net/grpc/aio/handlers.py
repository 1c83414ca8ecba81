"""From a service to what grpc wants to have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
from grpc import StatusCode

from msx_frontend.errors import ServiceError
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.context import Call, request_id_in
from msx_frontend.net.grpc.service import Method, Service
from msx_frontend.net.grpc.status import metadata

_KINDS: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def generic_handler(service: Service) -> grpc.GenericRpcHandler[Any, Any]:
    handlers = {method.name: _handler(service, method) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.name, handlers)


def _handler(service: Service, method: Method) -> Any:
    make = _KINDS[method.client_streams, method.server_streams]
    return make(_guarded(service, method), request_deserializer=method.parse, response_serializer=method.serialize)


def _guarded(service: Service, method: Method) -> Callable[[Any, Any], Any]:
    """Errors become statuses, the call a line of the log. One coroutine for both: each costs every call its part."""
    answer, target, access_log = method.answer, method.target, service.access_log

    async def guarded(request: Any, context: Any) -> Any:
        started, status, known = time.monotonic(), Code.UNKNOWN, _Known(context)
        try:
            response = await answer(request, known)
            status = Code.OK
            return response
        except ServiceError as error:
            status = service.code_of(error)
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), *metadata(error)))
            return await context.abort(StatusCode[status.name], service.details_of(error))
        except asyncio.CancelledError:
            status = Code.CANCELLED
            raise
        finally:
            if access_log is not None:
                id = request_id_in(context.trailing_metadata())
                call = Call(_client(context), target, id, started, key_name=known.key_name)
                access_log.write(call, status.value)

    return guarded


class _Known:
    """The Context of a call: grpc's, which takes no attributes, and what admission knows."""

    def __init__(self, context: Any) -> None:
        self._context, self.key_name = context, ""
        self.write = context.write

    def invocation_metadata(self) -> Any:
        return self._context.invocation_metadata()

    def set_trailing_metadata(self, trailing_metadata: Any, /) -> None:
        self._context.set_trailing_metadata(trailing_metadata)

    def trailing_metadata(self) -> Any:
        return self._context.trailing_metadata()

    def time_remaining(self) -> Any:
        return self._context.time_remaining()


def _client(context: Any) -> str:
    """`ipv4:127.0.0.1:33002` without its first word."""
    peer: str = context.peer()
    return peer.partition(":")[2]
