"""Every OpenAI route is also below /openai/v1, where KServe's clients look for it."""

from __future__ import annotations

from typing import Any

import pytest

from msx_net.http.family import Route
from msx_net.http.router import Router
from tests.frontend.apis.families import all_families
from tests.frontend.apis.openapi.test_document import operations
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "/v1/completions": ("POST", {"model": "m", "prompt": "a"}),
    "/v1/chat/completions": ("POST", {"model": "m", "messages": [{"role": "user", "content": "a"}]}),
    "/v1/responses": ("POST", {"model": "m", "input": "a"}),
    "/v1/responses/{id}": ("GET", {}),
    "/v1/responses/{id}/cancel": ("POST", {}),
    "/v1/responses/{id}/input_items": ("GET", {}),
    "/v1/files": ("GET", {}),
    "/v1/files/{id}": ("GET", {}),
    "/v1/files/{id}/content": ("GET", {}),
    "/v1/batches": ("GET", {}),
    "/v1/batches/{id}": ("GET", {}),
    "/v1/batches/{id}/cancel": ("POST", {}),
    "/v1/embeddings": ("POST", {"model": "m", "input": "a", "dimensions": -1}),
    "/v1/rerank": ("POST", {"model": "m", "query": "a", "documents": []}),
    "/v1/models": ("GET", {}),
    "/v1/models/{model:path}": ("GET", {}),
    "/v1/models/{model}": ("GET", {}),
}
"""A request for each route; those for embeddings and ranking are refused, in OpenAI's form."""
DIFFERENT = ("id", "created", "created_at", "completed_at", "output")
"""Members that differ from reply to reply: ids and times."""


def routes() -> list[Route]:
    return [route for family in all_families() if family.name == "OpenAI" for route in family.routes]


def test_the_table_is_whole() -> None:
    """`/v2/rerank` is Cohere's: KServe's clients call OpenAI's routes, which are below `/v1`."""
    assert {route.path for route in routes() if route.path.startswith("/v1/")} == ROUTES.keys()
    assert {route.path for route in routes() if route.path.startswith("/openai/")} == {
        f"/openai{path}" for path in ROUTES
    }


@pytest.mark.parametrize(("path", "method", "body"), [(path, *one) for path, one in ROUTES.items()], ids=ROUTES)
def test_the_same_answer(path: str, method: str, body: dict[str, Any]) -> None:
    asked = path.replace("{model:path}", "a/b").replace("{model}", "m")

    async def test() -> None:
        speaker = Speaker([words("hello")])
        here, there = [await speaker.ask(f"{prefix}{asked}", body, method=method) for prefix in ("", "/openai")]
        assert here.status == there.status
        assert _lasting(here.json) == _lasting(there.json)

    run(test())


@pytest.mark.parametrize("path", ROUTES)
def test_the_same_keys(path: str) -> None:
    families = all_families()
    router = Router(families, families[0])
    asked = path.replace("{model:path}", "a/b").replace("{model}", "m")
    method = ROUTES[path][0]
    here, there = (router.find(method, prefix + asked) for prefix in ("", "/openai"))
    assert here.route is not None
    assert there.route is not None
    assert (there.kinds, there.names, there.route.answer) == (here.kinds, here.names, here.route.answer)


@pytest.mark.parametrize("path", [path for path in ROUTES if ":path" not in path])
def test_the_document_has_both(path: str) -> None:
    method = ROUTES[path][0].lower()
    described = operations("inference")
    here, there = (described[f"{method} {prefix}{path}"] for prefix in ("", "/openai"))
    assert there.get("requestBody") == here.get("requestBody")
    assert there["summary"].endswith(f"the same as {path}")


def test_an_unknown_path_is_told_in_openais_form() -> None:
    async def test() -> None:
        reply = await Speaker().ask("/openai/v1/audio/speech", {})
        assert (reply.status, reply.json["error"]["type"]) == (404, "invalid_request_error")

    run(test())


def _lasting(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name not in DIFFERENT}
