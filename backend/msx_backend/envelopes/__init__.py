"""What `service_envelope` names: wrappers that unpack requests before the handler sees them, and pack its answers."""

from __future__ import annotations

import dataclasses
from typing import Any

from msx_backend.envelopes.base import BaseEnvelope
from msx_backend.envelopes.body import BodyEnvelope
from msx_backend.envelopes.json import JSONEnvelope
from msx_backend.envelopes.kserve import KServeEnvelope
from msx_backend.envelopes.kservev2 import KServev2Envelope
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError
from msx_sdk.resolve import HandleKind, ResolvedHandler

ENVELOPES: dict[str, type[BaseEnvelope]] = {
    "body": BodyEnvelope,
    "json": JSONEnvelope,
    "kserve": KServeEnvelope,
    "kservev2": KServev2Envelope,
}


def wrapped(handler: ResolvedHandler, name: str) -> ResolvedHandler:
    """The handler in the envelope of this name. Raises HandlerLoadError for one that cannot be put into one."""
    envelope = ENVELOPES[name]
    if handler.kind in (HandleKind.GENERATOR, HandleKind.ASYNC_GENERATOR):
        raise HandlerLoadError(
            f"service_envelope={name} packs whole replies, and this handler streams by yield: take the envelope out of "
            "the server's configuration, or let the handler return its reply"
        )
    inner = handler.handle

    def handle(data: Any, context: Context) -> Any:
        return inner(data, context) if _as_it_is(context) else envelope(inner).handle(data, context)

    async def handle_async(data: Any, context: Context) -> Any:
        if _as_it_is(context):
            return await inner(data, context)
        return await envelope(inner).handle_async(data, context)

    return dataclasses.replace(handler, handle=handle_async if handler.is_async else handle)


def _as_it_is(context: Context) -> bool:
    """The handler's own example, and the question what the model is, come without an envelope."""
    return context.is_example(0) or context.get_request_header(0, "describe") == "True"
