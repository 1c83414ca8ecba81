"""MSService: its one method is a request whose instances are jobs."""

from __future__ import annotations

from typing import Any

from msx_core.held_bytes import HeldBytes
from msx_core.replies.sink import Cancellable, Sink
from msx_mindspore_serving.family.calls import LARGE, MANY
from msx_mindspore_serving.family.grpc.grpc_call import GrpcCall
from msx_mindspore_serving.family.servables import Servables
from msx_net.grpc.context import LogsCalls
from msx_net.grpc.service import JobMethod, Rpc, Service, describe

SERVICE = "mindspore.serving.proto.MSService"

_FEW_BYTES = 16 * LARGE
"""Numbers in messages are copied, not parsed."""


def mindspore_serving_service(
    servables: Servables,
    max_response_size: int,
    access_log: LogsCalls | None = None,
    held: HeldBytes | None = None,
    *,
    asks_key: bool = True,
) -> Service:
    """`max_response_size` is in bytes of one reply. A listener that a start script opens asks for no key."""

    def submit(request: Any, id: str, deadline: float | None, sink: Sink) -> Cancellable:
        call = GrpcCall(servables, id, sink, request.servable_spec, deadline)
        call.begin(request, large=len(request.instances) > MANY or request.ByteSize() > _FEW_BYTES)
        return call

    method = JobMethod(submit, _as_it_is, max_response_size, held or HeldBytes(), encoded=True)
    rpc = Rpc(method, key="inference" if asks_key else None, model="servable_spec.name")
    return describe(SERVICE, {"Predict": rpc}, access_log=access_log)


def _as_it_is(data: bytes) -> bytes:
    return data
