"""A family or a service that is added to the lists is attacked, without anybody thinking of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from msx_frontend.assembly import http_front
from msx_frontend.assembly.families import families
from msx_frontend.assembly.grpc_services import grpc_services
from msx_net.grpc.service import Rpc, describe
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_net.listening.address import Address
from tests.adversary import asks
from tests.adversary.kinds import malformed
from tests.adversary.rig import Attack, Door
from tests.adversary.wires import Http1, Http2
from tests.frontend.front import front_of
from tests.frontend.harness import open_harness
from tests.loops import run

pytestmark = pytest.mark.long


class Guess(msgspec.Struct):
    number: int
    model: str = ""


class MadeUp:
    """A family with one route, which fails when its number is a text."""

    def family(self) -> Family:
        route = Route(
            "POST", "/guess/{model}", self._guess, key=None, request_schema=Guess, example={"number": 1, "model": ""}
        )
        return Family("made up", (route,), torchserve_failure)

    async def _guess(self, request: Request) -> Reply:
        value = request.object().get("number", 0)
        if isinstance(value, str):
            raise TypeError("a bug")
        return Reply(b"{}")


def test_a_made_up_family_is_attacked(tmp_path: Path) -> None:
    made_up = MadeUp()
    listed = lambda parts: [*families(parts), made_up.family()]  # noqa: E731

    async def test() -> list[str]:
        with patch.object(http_front, "families", listed):
            async with asks.lists(tmp_path) as found:
                own = [ask for ask in found.asks("m") if ask.family == "made up"]
            async with open_harness(tmp_path, inference_address=Address("http", "127.0.0.1", 0)) as harness:
                (listener,) = front_of(harness).listen(["inference"])
                await listener.start()
                door = Door("inference", str(listener.address), ("inference",))
                try:
                    return [await malformed(Attack(ask, door, wire, "")) for ask in own for wire in (Http1, Http2)]
                finally:
                    await listener.stop(1)

    faults = run(test())
    assert ["500" in fault for fault in faults] == [True, True]


def test_a_made_up_service_is_attacked(tmp_path: Path) -> None:
    async def nothing(request: Any, context: Any) -> None: ...

    service = describe(
        "msx.TrafficService", dict.fromkeys(("ShowTraffic", "DivideTraffic", "EndTraffic"), Rpc(nothing))
    )
    made_up = service._replace(methods=tuple(one._replace(service="made.Up") for one in service.methods))

    async def test() -> list[str]:
        with patch.object(asks, "grpc_services", lambda *parts: [*grpc_services(*parts), made_up]):
            async with asks.lists(tmp_path) as found:
                return [ask.path for ask in found.asks("m")]

    paths = asyncio.run(test())
    assert {"/made.Up/ShowTraffic", "/made.Up/DivideTraffic", "/made.Up/EndTraffic"} <= {*paths}
