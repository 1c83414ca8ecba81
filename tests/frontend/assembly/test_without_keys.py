"""Without keys: whom a whole server lets manage it, on separate listeners and on one, over each version of HTTP."""

from __future__ import annotations

import io
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from msx_frontend.assembly.server import Server
from msx_net.listening.address import Address
from msx_net.page_guard import SAFE
from tests.free_ports import free_port
from tests.frontend.assembly.in_process import config_of, started
from tests.loops import run

pytestmark = pytest.mark.usefixtures("_own_environment")

FOREIGN = {"origin": "http://evil.example", "sec-fetch-site": "cross-site", "content-type": "text/plain"}
REBOUND = {"host": "evil.example:8081"}


def with_server(folder: Path, test: Callable[[Server], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with AsyncExitStack() as parts:
            await test(await started(config_of(folder, enable_model_api=True, **options), parts))

    run(main())


def merged(folder: Path) -> dict[str, Any]:
    address = Address("http", "127.0.0.1", free_port())
    return {"inference_address": address, "management_address": address}


def routes(server: Server) -> dict[tuple[str, str], bool]:
    """Method and URL of each, and whether it is management: by its listener, or its key. The first of a path counts."""
    found: dict[tuple[str, str], bool] = {}
    for family in server.front.families:
        managed = family.listener == "management"
        base = server.info.management if managed else server.info.inference
        for route in family.routes if family.listener != "metrics" else ():
            if route.when is not None and not route.when():
                continue
            path = re.sub(r"\{[^}]*\}", "x", route.path)
            found.setdefault((route.method, base + path), managed or route.key == "management")
    return found


async def status(client: httpx.AsyncClient, method: str, url: str, headers: dict[str, str]) -> int:
    async with client.stream(method, url, headers=headers) as reply:
        return reply.status_code


@pytest.mark.parametrize("one_listener", [False, True])
@pytest.mark.parametrize("http2", [False, True])
def test_every_route_of_management_is_kept_from_foreign_pages(tmp_path: Path, one_listener: bool, http2: bool) -> None:
    async def test(server: Server) -> None:
        async with httpx.AsyncClient(http1=not http2, http2=http2, timeout=60) as client:
            for (method, url), managed in routes(server).items():
                changes = managed and method not in SAFE
                assert (await status(client, method, url, FOREIGN) == 403) == changes, (method, url)
                assert (await status(client, method, url, REBOUND) == 403) == managed, (method, url)

    with_server(tmp_path, test, **(merged(tmp_path) if one_listener else {}))


def test_a_page_registers_nothing_and_is_told_why(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        async with httpx.AsyncClient(base_url=server.info.management) as client:
            url = "/models?url=m.mar"
            for headers, words in ((FOREIGN, ["Sec-Fetch-Site", "cors_allowed_origin"]), (REBOUND, ["allowed_hosts"])):
                reply = await client.post(url, headers=headers, content=b"")
                assert reply.status_code == 403
                assert reply.json()["type"] == "ForbiddenException"
                assert all(word in reply.json()["message"] for word in words)
            own = {"origin": server.info.management, "sec-fetch-site": "same-origin"}
            for headers in ({}, own, {"origin": "http://good.example"}, {"host": "msx.lan"}):
                assert (await client.post(url, headers=headers)).status_code == 404, headers  # there is no m.mar

    with_server(tmp_path, test, cors_allowed_origin="http://good.example", allowed_hosts=("msx.lan",))


def test_paths_that_nobody_has_and_descriptions_are_of_the_listener(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        async with httpx.AsyncClient() as client:
            for path in ("/nothing", "/openapi.json", "/api-description", "/docs", "/console"):
                reply = await client.get(server.info.management + path, headers=REBOUND)
                assert reply.status_code == 403, path
            for path in ("/openapi.json", "/api-description", "/ping"):
                reply = await client.get(server.info.inference + path, headers=REBOUND)
                assert reply.status_code == 200, path

    with_server(tmp_path, test)


def test_a_unix_socket_has_no_name_to_judge(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "m.sock"))
        async with httpx.AsyncClient(transport=transport, base_url="http://any.example") as client:
            assert (await client.get("/models")).status_code == 200
            assert (await client.post("/models", headers=FOREIGN)).status_code == 403

    with_server(tmp_path, test, management_address=Address.parse(f"unix:{tmp_path}/m.sock"))


def test_with_keys_the_key_is_what_counts(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        assert server.front.guard is None
        async with httpx.AsyncClient(base_url=server.info.management) as client:
            reply = await client.post("/models", headers={**FOREIGN, **REBOUND})
            assert reply.json()["type"] == "InvalidKeyException"

    with_server(tmp_path, test, disable_token_authorization=False)


@pytest.mark.parametrize("model_api", [False, True])
def test_the_start_says_what_is_open(tmp_path: Path, model_api: bool) -> None:
    log = io.StringIO()

    async def main() -> None:
        async with AsyncExitStack() as parts:
            config = config_of(tmp_path, enable_model_api=model_api, cors_allowed_origin="*")
            server = await started(config, parts, log)
            [said] = [line for line in log.getvalue().splitlines() if "No request needs a key" in line]
            assert "WARN" in said
            assert server.info.management in said
            assert server.info.grpc_management in said
            assert ("register models" in said) == model_api
            assert "cors_allowed_origin=*" in said

    run(main())
