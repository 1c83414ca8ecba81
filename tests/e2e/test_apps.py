"""Applications of users on a running server: the example, and one of FastAPI."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import run_server
from tests.plugins import install, install_module

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples" / "app"
FASTAPI = """
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel


@asynccontextmanager
async def lifespan(app):
    print("the app starts")
    yield
    print("the app ends", flush=True)


class Order(BaseModel):
    name: str
    count: int


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
def order(order: Order) -> Order:
    return order
"""
BROKEN = """
async def app(scope, receive, send):
    await receive()
    raise OSError("no such file")
"""


def asked(key: str, address: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"authorization": f"Bearer {key}"}, trust_env=False)


def test_applications_beside_models(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    install(plugins, EXAMPLE)
    install_module(plugins, "orders", FASTAPI, apps={"orders": "orders:app"})
    install_module(plugins, "broken", BROKEN, apps={"broken": "broken:app"})
    keys = tmp_path / "keys.yaml"
    keys.write_text(
        "keys:\n- {name: team, key: " + "t" * 32 + ", kind: inference, apps: [shop, orders]}\n"
        "- {name: other, key: " + "o" * 32 + ", kind: inference, models: [m]}\n"
        "- {name: admin, key: " + "a" * 32 + ", kind: management}\n"
    )
    properties = f"plugins_path={plugins}\napi_keys_file={keys}\n"
    with run_server(tmp_path, properties=properties, tokens=True) as server:
        inference, management = server.info["inference"], server.info["management"]
        with asked("t" * 32, inference) as team, asked("o" * 32, inference) as other:
            assert team.get("/apps/shop/prices/apple").json() == {"name": "apple", "price": 3}
            assert "/apps/shop/prices/apple" in team.get("/apps/shop/").text
            assert team.get("/apps/shop/ticks").text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
            order: dict[str, Any] = {"name": "pear", "count": 2}
            assert team.post("/apps/orders/orders", json=order).json() == order
            assert team.post("/apps/orders/orders", json={}).status_code == 422
            assert other.get("/apps/shop/").status_code == 403
            assert httpx.get(f"{inference}/apps/shop/", trust_env=False).status_code == http.client.BAD_REQUEST
            assert team.get("/apps/broken/").status_code == 403
        with asked("a" * 32, management) as admin:
            listed = {app["name"]: app["status"] for app in admin.get("/apps").json()["apps"]}
            assert listed == {"broken": "FAILED", "orders": "READY", "shop": "READY"}
            assert admin.get("/apps/shop/").status_code == 404
        assert server.metric("msx_app_requests_total", app="shop", code="200") == 3
        assert (
            "the app broken (broken:app of broken 1.0) does not answer: its lifespan failed" in server.log.read_text()
        )
    assert "the app ends" in server.log.read_text()
