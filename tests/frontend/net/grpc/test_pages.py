"""Calls that a web page of others has made a browser send: management is not for them where no keys are asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from msx_frontend.apis.torchserve.grpc.management import SERVICE as MANAGEMENT
from msx_net.grpc.admission import Admission
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.served import served_methods
from msx_net.grpc.service import Service
from msx_net.page_guard import PageGuard
from tests.frontend.net.grpc.harness import Served, failure, serving
from tests.net.grpc.direct.fakes import FakeService

GUARD = PageGuard(lambda origin: origin == "https://good.example", ())
HERE, ELSEWHERE = ("127.0.0.1", 7071), ("10.0.0.5", 7071)


async def _list_models(served: Served, *metadata: tuple[str, str]) -> Any:
    async with grpc.aio.insecure_channel(served.server.management.address) as channel:
        method: Any = channel.unary_unary(f"/{MANAGEMENT}/ListModels", bytes, bytes)
        return await failure(method(b"", metadata=metadata)) if metadata else await method(b"")


@pytest.mark.usefixtures("transport")
@pytest.mark.parametrize("header", [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")])
def test_a_foreign_page_does_not_manage(header: tuple[str, str]) -> None:
    async def test() -> None:
        async with serving(guard=GUARD) as served:
            error = await asyncio.wait_for(_list_models(served, header), 60)
            assert error.code() is StatusCode.PERMISSION_DENIED
            assert "cors_allowed_origin" in error.details()
            assert served.models.calls == []
            await asyncio.wait_for(_list_models(served), 60)
            assert (await asyncio.wait_for(served.ping([header]), 60)).health

    asyncio.run(test())


def head(target: str, server: tuple[str, int] | None, service: Service, **headers: str) -> CallHead:
    fields = {":method": "POST", ":path": target, ":authority": "localhost:7071", "content-type": "application/grpc"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    methods = {f"/{one.target}".encode(): one for one in served_methods([service], Admission(None, GUARD), 100)}
    return CallHead([(name.encode(), value.encode()) for name, value in fields.items()], methods, server)


def test_authority_is_judged_on_a_loopback_address() -> None:
    service = FakeService().service()._replace(listener="management")
    rebound = {":authority": "evil.example:7071"}
    refused = head("/a.Service/Unary", HERE, service, **rebound).refused
    assert refused is not None
    assert (refused.code, "allowed_hosts" in refused.message) == (Code.PERMISSION_DENIED, True)
    assert head("/a.Service/Unary", ELSEWHERE, service, **rebound).refused is None
    assert head("/a.Service/Unary", None, service, **rebound).refused is None
    assert head("/a.Service/Unary", HERE, service, origin="https://good.example").refused is None


def test_a_method_is_management_by_its_key_too() -> None:
    """As KServe's repository is, on the listener of inference."""
    inference = FakeService().service()
    keyed = inference._replace(methods=tuple(one._replace(key="management") for one in inference.methods))
    assert head("/a.Service/Unary", HERE, inference, origin="http://evil.example").refused is None
    assert head("/a.Service/Unary", HERE, keyed, origin="http://evil.example").refused is not None
