"""Methods of a service."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.held_bytes import HeldBytes
from msx_core.replies.sink import Cancellable, Sink
from msx_net.grpc.admission import Admitted
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import JobMethod, Rpc, Service, describe, limited
from msx_net.grpc.unary_reply import ResponseTooLarge

NAME = "mindspore.serving.proto.MSService"
Request = message_class("mindspore.serving.proto.PredictRequest")


class Nothing:
    credit = None

    def cancel(self, error: Any = None) -> None: ...


def submit(request: Any, id: str, deadline: float | None, sink: Sink) -> Cancellable:
    sink.answer(200, "", [], b"four")
    return Nothing()


def service(model: str = "") -> Service:
    method = JobMethod(submit, bytes, 100, HeldBytes(), encoded=True)
    return describe(NAME, {"Predict": Rpc(method, model=model)})


@pytest.mark.parametrize(("field", "model"), [("servable_spec.name", "add"), ("", "")])
def test_the_model_of_a_request(field: str, model: str) -> None:
    assert service(field).methods[0].model_of(Request(servable_spec={"name": "add"})) == model


def test_a_response_that_is_bytes_already() -> None:
    assert service().methods[0].serialize(b"four") == b"four"


@pytest.mark.parametrize(("limit", "fits"), [(4, True), (3, False)])
def test_a_listener_with_a_limit_of_its_own(limit: int, fits: bool) -> None:
    """Also where a coroutine answers."""
    (method,) = limited(service(), limit).methods
    assert method.job is not None
    assert method.job.limit == limit
    context: Any = SimpleNamespace(admitted=Admitted("r", None), deadline=None)

    async def answered() -> Any:
        return await method.answer(Request(), context)

    if fits:
        assert asyncio.run(answered()) == b"four"
    else:
        with pytest.raises(ResponseTooLarge):
            asyncio.run(answered())
