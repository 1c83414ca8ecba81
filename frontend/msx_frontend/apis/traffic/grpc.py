"""`msx.TrafficService`: what `/models/{model_name}/traffic` does, over gRPC."""

from typing import Any

import msgspec

from msx_frontend.apis.traffic.calls import DividesTraffic
from msx_frontend.whole_calls import WholeCalls
from msx_net.grpc.context import CallContext, LogsCalls
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import Rpc, Service, describe

SERVICE = "msx.TrafficService"

_Response = message_class("msx.TrafficResponse")


class TrafficService:
    def __init__(self, models: DividesTraffic, access_log: LogsCalls | None = None) -> None:
        self._models, self._access_log = models, access_log
        self._calls = WholeCalls()

    def service(self) -> Service:
        answers = {"DivideTraffic": self._divide, "EndTraffic": self._end, "ShowTraffic": self._show}
        methods = {name: Rpc(answer, key="management") for name, answer in answers.items()}
        return describe(SERVICE, methods, access_log=self._access_log, listener="management")

    async def _divide(self, request: Any, context: CallContext) -> Any:
        rule = {"weights": dict(sorted(request.weights.items())), "stickyHeader": request.sticky_header}
        return _Response(msg=(await self._calls.run(self._models.divide_traffic(request.model_name, rule))).text)

    async def _end(self, request: Any, context: CallContext) -> Any:
        return _Response(msg=(await self._calls.run(self._models.end_traffic(request.model_name))).text)

    async def _show(self, request: Any, context: CallContext) -> Any:
        return _Response(msg=msgspec.json.encode(self._models.traffic(request.model_name)).decode())
