"""TorchServe's management service: the calls of `ModelApi`, whose answers are REST's texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec

from msx_core.service_errors import ServiceError
from msx_frontend.apis.torchserve.grpc.status import details
from msx_frontend.management_errors import ModelApiDisabled
from msx_frontend.models.model_api import StatusMessage
from msx_frontend.models.parameters import Values
from msx_frontend.whole_calls import WholeCalls
from msx_net.grpc.context import CallContext, LogsCalls
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import Rpc, Service, describe

SERVICE = "org.pytorch.serve.grpc.management.ManagementAPIsService"

_Response = message_class("org.pytorch.serve.grpc.management.ManagementResponse")

Answer = Callable[[Any, str], Coroutine[Any, Any, str]]
"""Makes the text of a response from a request and its id."""


class ManagesModels(Protocol):
    """ModelApi. Every method raises ServiceError."""

    def models(self, values: Values) -> dict[str, Any]: ...

    async def describe(
        self, name: str, number: str | None, values: Values, request_id: str
    ) -> list[dict[str, Any]]: ...

    async def register(self, values: Values) -> StatusMessage: ...

    async def scale(self, name: str, number: str | None, values: Values) -> StatusMessage: ...

    async def unregister(self, name: str, number: str | None) -> StatusMessage: ...

    async def set_default(self, name: str, number: str) -> StatusMessage: ...


class Disabled(ServiceError):
    """TorchServe's words where models are neither registered nor unregistered."""

    status, type, grpc_code = 405, "ModelException", "PERMISSION_DENIED"

    def __init__(self) -> None:
        super().__init__("Model API disabled")


class ManagementService:
    """A call that has begun goes on to its end, also without its client: what it changes is never half done."""

    def __init__(self, models: ManagesModels, access_log: LogsCalls | None = None) -> None:
        self._models, self._access_log = models, access_log
        self._calls = WholeCalls()

    def service(self) -> Service:
        answers: dict[str, Answer] = {
            "DescribeModel": self._describe,
            "ListModels": self._list,
            "RegisterModel": self._register,
            "ScaleWorker": self._scale,
            "SetDefault": self._set_default,
            "UnregisterModel": self._unregister,
        }
        methods = {name: Rpc(self._method(answer), key="management") for name, answer in answers.items()}
        return describe(SERVICE, methods, details_of=details, access_log=self._access_log, listener="management")

    def _method(self, answer: Answer) -> Callable[[Any, CallContext], Awaitable[Any]]:
        async def method(request: Any, context: CallContext) -> Any:
            try:
                return _Response(msg=await self._calls.run(answer(request, context.admitted.id)))
            except ModelApiDisabled:
                raise Disabled from None

        return method

    async def _describe(self, request: Any, request_id: str) -> str:
        number = request.model_version or None
        return _json(await self._models.describe(request.model_name, number, _given(request), request_id))

    async def _list(self, request: Any, request_id: str) -> str:
        return _json(self._models.models(_given(request)))

    async def _register(self, request: Any, request_id: str) -> str:
        return (await self._models.register({"synchronous": False, **_given(request)})).text

    async def _scale(self, request: Any, request_id: str) -> str:
        return (await self._models.scale(request.model_name, request.model_version or None, _given(request))).text

    async def _set_default(self, request: Any, request_id: str) -> str:
        return (await self._models.set_default(request.model_name, request.model_version)).text

    async def _unregister(self, request: Any, request_id: str) -> str:
        return (await self._models.unregister(request.model_name, request.model_version or None)).text


def _given(request: Any) -> dict[str, Any]:
    """The fields that the client sent; an empty text, `false`, and mostly 0 are the same as nothing."""
    return {field.name: value for field, value in request.ListFields()}


def _json(value: Any) -> str:
    """TorchServe's layout."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
