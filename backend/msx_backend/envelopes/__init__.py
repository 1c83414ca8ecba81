"""Envelopes, which `service_envelope` names: they unpack requests before the handler sees them, and pack its
answers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from msx_backend.envelopes.by_name import envelope_named
from msx_core.resolved_handler import HandleKind, ResolvedHandler
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError

Call = Callable[[Any, Context], Any]


def wrapped(handler: ResolvedHandler, name: str) -> ResolvedHandler:
    """The handler in the envelope of this name. Raises HandlerLoadError for a handler that cannot be wrapped."""
    envelope = envelope_named(name)
    _check_whole(handler.handle, name, "this handler")
    if handler.is_async and not hasattr(envelope, "handle_async"):
        raise HandlerLoadError(
            f"service_envelope={name}: {envelope.__name__} has no handle_async, which a handler that is async needs: "
            "derive it from ts.torch_handler.request_envelope.base.BaseEnvelope of this server"
        )
    for method, marked in handler.methods.items():
        _check_whole(marked.call, name, f"the method {method}")
    methods = {
        method: marked._replace(call=_enclosed(envelope, marked.call, is_async=handler.is_async))
        for method, marked in handler.methods.items()
    }
    handle = _enclosed(envelope, handler.handle, is_async=handler.is_async)
    return dataclasses.replace(handler, handle=handle, methods=methods)


def _check_whole(function: Call, name: str, it: str) -> None:
    """Raises HandlerLoadError."""
    if HandleKind.of(function) in (HandleKind.GENERATOR, HandleKind.ASYNC_GENERATOR):
        raise HandlerLoadError(
            f"service_envelope={name} packs whole replies, and {it} streams by yield: take the envelope out of "
            "the server's configuration, or return the reply"
        )


def _enclosed(envelope: type[Any], inner: Call, *, is_async: bool) -> Call:
    """The function in an envelope of its own."""
    made = _makes(envelope, inner, is_async=is_async)

    def handle(data: Any, context: Context) -> Any:
        return inner(data, context) if _as_it_is(context) else made().handle(data, context)

    async def handle_async(data: Any, context: Context) -> Any:
        if _as_it_is(context):
            return await inner(data, context)
        return await made().handle_async(data, context)

    return handle_async if is_async else handle


def _makes(envelope: type[Any], inner: Call, *, is_async: bool) -> Callable[[], Any]:
    """Makes one object for all calls, as in TorchServe, where calls do not overlap; or one for each call, if the class
    says so."""

    def make() -> Any:
        return envelope(inner)

    return make if is_async or vars(envelope).get("one_per_call", False) else functools.cache(make)


def _as_it_is(context: Context) -> bool:
    """The handler's own example, and a describe request, come without an envelope."""
    return context.is_example(0) or context.get_request_header(0, "describe") == "True"
