"""A Starlette application that MSX serves below /apps/shop: a page, a form, events, and what it makes at its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route


class State(TypedDict):
    prices: dict[str, int]


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[State]:
    yield {"prices": {"apple": 3, "pear": 4}}


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f'<a href="{request.url_for("price", name="apple")}">An apple</a>')


async def price(request: Request) -> JSONResponse:
    name = request.path_params["name"]
    known = request.state.prices.get(name)
    return JSONResponse({"name": name, "price": known}, 200 if known else 404)


async def ticks(request: Request) -> StreamingResponse:
    async def events() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"data: %d\n\n" % number
            await asyncio.sleep(0.1)

    return StreamingResponse(events(), media_type="text/event-stream")


app = Starlette(
    routes=[Route("/", page), Route("/prices/{name}", price, name="price"), Route("/ticks", ticks)],
    lifespan=lifespan,
)
