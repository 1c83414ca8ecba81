"""Paths below /v1 that language models answer: while none does, a service may have them."""

from __future__ import annotations

from msx_net.http.family import JobRoute
from msx_net.http.router import Router
from tests.frontend.apis.families import of_listener


def test_each_path_of_a_text_api_is_lent() -> None:
    families = of_listener("inference")
    router = Router(families, families[0])
    lent = [f"/{segment}/" for family in families for segment in family.lends]
    paths = [
        route.path
        for family in families
        for route in family.routes
        if isinstance(route.answer, JobRoute) and route.path.startswith(tuple(lent)) and "{" not in route.path
    ]
    assert {path: router.taken_by(path) for path in paths} == {
        "/v1/completions": ("generate",),
        "/v1/chat/completions": ("generate",),
        "/v1/responses": ("generate",),
        "/v1/embeddings": ("embed",),
        "/v1/rerank": ("rerank",),
        "/v1/messages": ("generate",),
        "/v1/tokenize": ("tokenize",),
        "/v1/detokenize": ("tokenize",),
        "/v1/score": ("rerank", "embed"),
        "/v1/messages/count_tokens": ("generate",),
    }


def test_paths_that_mosecs_server_keeps_for_itself() -> None:
    families = of_listener("inference")
    router = Router(families, families[0])
    paths = ("/", "/metrics", "/openapi", "/openapi/metadata.json", "/inference")
    assert [path for path in paths if router.taken_by(path) is not None] == ["/"]
