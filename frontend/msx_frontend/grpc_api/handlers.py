"""From a service's name and its coroutines to what grpc wants to have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from msx_frontend.errors import ServiceError
from msx_frontend.grpc_api.messages import POOL
from msx_frontend.grpc_api.status import details, standard_code

Context = grpc.aio.ServicerContext[Any, Any]
Method = Callable[[Any, Context], Awaitable[Any]]
"""Takes the request (an iterator of them for a client's stream); returns the response, or writes a stream of them.

Streams are written with `context.write` rather than yielded: a coroutine hears at once that its client left.
"""

CodeOf = Callable[[ServiceError], StatusCode]
DetailsOf = Callable[[ServiceError], str]

REQUEST_ID = "x-request-id"

_OK, _UNKNOWN, _CANCELLED = (code.value[0] for code in (StatusCode.OK, StatusCode.UNKNOWN, StatusCode.CANCELLED))

_KINDS: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class Call(NamedTuple):
    """What the access log tells of a call; `started` is a time.monotonic() instant."""

    client: str
    target: str
    id: str
    started: float
    method: str = "gRPC"
    protocol: str = "HTTP/2.0"


class LogsCalls(Protocol):
    def write(self, call: Call, status: int) -> None:
        """`status` is the number of gRPC's status code; 0 is OK."""


def service_handler(
    service: str,
    methods: Mapping[str, Method],
    *,
    code_of: CodeOf = standard_code,
    details_of: DetailsOf = details,
    access_log: LogsCalls | None = None,
) -> grpc.GenericRpcHandler[Any, Any]:
    """Every method of the service, by its descriptor. Raises KeyError for one that `methods` lacks."""
    handlers = {}
    for method in POOL.FindServiceByName(service).methods:
        name = method.name
        guarded = _guarded(methods[name], f"{service}/{name}", code_of, details_of, access_log)
        handlers[name] = _method_handler(method, guarded)
    return grpc.method_handlers_generic_handler(service, handlers)


def _method_handler(method: MethodDescriptor, call: Method) -> Any:
    return _KINDS[method.client_streaming, method.server_streaming](
        call,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )


def _guarded(call: Method, target: str, code_of: CodeOf, details_of: DetailsOf, access_log: LogsCalls | None) -> Method:
    """Errors become statuses, the call a line of the log. One coroutine for both: each costs every call its part."""

    async def guarded(request: Any, context: Context) -> Any:
        started, status = time.monotonic(), _UNKNOWN
        try:
            response = await call(request, context)
            status = _OK
            return response
        except ServiceError as error:
            code = code_of(error)
            status = code.value[0]
            return await context.abort(code, details_of(error))
        except asyncio.CancelledError:
            status = _CANCELLED
            raise
        finally:
            if access_log is not None:
                access_log.write(Call(_client(context), target, _request_id(context), started), status)

    return guarded


def _request_id(context: Context) -> str:
    """Which admission has set."""
    return next((str(value) for key, value in context.trailing_metadata() or () if key == REQUEST_ID), "")


def _client(context: Context) -> str:
    """`ipv4:127.0.0.1:33002` without its first word."""
    return context.peer().partition(":")[2]
