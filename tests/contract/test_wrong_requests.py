"""Errors of requests that clients got wrong, over all families: what came, what is expected, and where the route is
described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract]

MALFORMED = b'{"a": 1,\n "b" 2}'
CHAT, TGI, TYPED, MODELS = "/v1/chat/completions", "/generate", "/predictions/typed", "/models"
UNKNOWN = "is not a route of this address; GET /docs shows those that are"
NOT_JSON = "The request body (text/csv) is not valid JSON: line 1, column 1: invalid character"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("wrong")
    store = new_store(folder)
    for name in ("typed", "norms", "parrot"):
        pack_service(name, store)
    with run_server(folder, "--models", *(f"{name}.mar" for name in ("typed", "norms", "parrot"))) as running:
        yield running


def text_of(reply: httpx.Response) -> str:
    body = reply.json()
    error = body.get("error", body)
    return str(error.get("message")) if isinstance(error, dict) else str(error)


WRONG: list[tuple[str, str, Any, int, str]] = [
    ("POST", TYPED, MALFORMED, 400, "(application/json) is not valid JSON: line 2, column 6: expecting ':' delimiter"),
    ("POST", TYPED, {"text": 5}, 400, "text: expected `str`, got `int`"),
    ("POST", TYPED, {}, 400, "The request does not fit Query: text is missing."),
    ("POST", TYPED, "a,b", 415, "does not read text/csv; send application/json or application/msgpack"),
    ("POST", "/predictions/nobody", {}, 404, "Model not found: nobody"),
    ("POST", "/predictions/typed/7.0", {}, 404, "Model version: 7.0 does not exist for model: typed"),
    ("POST", "/prediction/typed", {}, 404, f"POST /prediction/typed {UNKNOWN}"),
    ("POST", "/v2/models/norms/infer", MALFORMED, 400, "line 2, column 6: expecting ':' delimiter"),
    ("POST", "/v2/models/norms/infer", {}, 400, "'inputs'"),
    ("POST", "/v2/model/norms/infer", {}, 404, f"POST /v2/model/norms/infer {UNKNOWN}"),
    ("DELETE", "/v2/models/norms/infer", None, 405, "/v2/models/norms/infer takes POST, OPTIONS, not DELETE"),
    ("POST", CHAT, MALFORMED, 400, "(application/json) is not valid JSON: line 2, column 6: expected ':'"),
    ("POST", CHAT, "a,b", 400, NOT_JSON),
    ("POST", CHAT, b"", 400, "is not valid JSON: it is empty"),
    ("POST", CHAT, b'{"model": "\xff"}', 400, "is not valid JSON: line 1, column 12"),
    ("POST", CHAT, {"model": "parrot"}, 400, "messages: needed, and missing"),
    ("POST", CHAT, {"messages": 3}, 400, "messages: expected `array`, got `int`"),
    ("POST", CHAT, {"messages": [], "model": "gpt"}, 404, "The models that can generate text: parrot."),
    ("GET", CHAT, None, 405, f"{CHAT} takes POST, OPTIONS, not GET; GET /docs describes it"),
    ("POST", TGI, MALFORMED, 422, "line 2, column 6: expected ':'"),
    ("POST", TGI, "a,b", 422, NOT_JSON),
    ("POST", TGI, {"input": "a"}, 422, "inputs: needed, and missing"),
    ("POST", TGI, {"inputs": "a", "parameters": {"top_k": "x"}}, 422, "parameters.top_k: expected"),
    ("POST", "/v2/models/parrot/generate", {}, 400, "text_input: needed, and missing"),
    ("POST", "/v2/models/parrot/generate", "a,b", 400, NOT_JSON),
    ("POST", MODELS, MALFORMED, 400, "(application/json) is not valid JSON: line 2, column 6"),
    ("POST", MODELS, [1], 400, "The request body must be a JSON object with parameters, not list"),
    ("POST", MODELS, {}, 400, "Parameter url is required"),
    ("PUT", "/models/typed/traffic", "a,b", 400, NOT_JSON),
    ("PUT", "/models/typed/traffic", [1], 400, 'such as {"1.0": 90, "2.0": 10}'),
    ("PUT", "/models/typed/aliases", "a,b", 400, NOT_JSON),
    ("PUT", "/models/typed/aliases", [1], 400, 'must be {"aliases": ["a-name", "org/name"]}'),
    ("PATCH", "/models/typed", None, 405, "/models/typed takes GET, HEAD, PUT, DELETE, OPTIONS, not PATCH"),
    ("GET", "/nothing/at/all", None, 404, f"GET /nothing/at/all {UNKNOWN}"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), WRONG)
def test_it_is_said(server: RunningServer, method: str, path: str, body: Any, status: int, said: str) -> None:
    client = server.management if path.startswith(MODELS) else server.inference
    kind = "text/csv" if isinstance(body, str) else "application/json"
    sent: dict[str, Any] = {"content": body} if isinstance(body, str | bytes) else {"json": body}
    reply = client.request(method, path, headers={"content-type": kind}, **({} if body is None else sent))
    assert reply.status_code == status, reply.text
    assert said in text_of(reply), text_of(reply)
    places = {link["rel"]: link["url"] for link in reply.links.values()}
    assert places == {"service-doc": "/docs", "service-desc": "/openapi.json"}
    assert client.get(places["service-doc"]).status_code == client.get(places["service-desc"]).status_code == 200


def test_what_went_well_does_not_say_where_it_is_described(server: RunningServer) -> None:
    assert "link" not in server.predict("typed", {"text": "a"}).headers
