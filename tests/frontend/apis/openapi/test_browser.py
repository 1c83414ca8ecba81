"""Pages for a browser that only has the address."""

from __future__ import annotations

import re

import pytest

from msx_frontend.apis.openapi.browser import FILES
from msx_frontend.apis.openapi.family import openapi
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family
from tests.frontend.apis.families import of_listener
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

CONSOLE = Family("console", (), torchserve_failure, listener="management", owns=("console",))


def asked(path: str, accept: str = "", *, console: bool = False, **headers: str) -> Exchange:
    own = [*of_listener("inference"), *([CONSOLE] if console else [])]
    edge = exchange_of(openapi("MSX inference API", own, lambda: (), None), *own, log=FakeAccessLog())
    return run(ask(edge, "GET", path, b"", **({"accept": accept} if accept else {}), **headers))


def test_the_address_says_what_it_is() -> None:
    said = asked("/").json
    assert re.fullmatch(r"MSX \S+ serves models of MindSpore here: MSX inference API\.", said["message"])
    assert (said["docs"], said["openapi"]) == ("/docs", "/openapi.json")
    assert "console" not in said
    assert asked("/", console=True).json["console"] == "/console"


def test_ollamas_clients_know_the_server_by_a_sentence() -> None:
    reply = asked("/", user_agent="ollama-python/0.6.3 (x86_64 linux)")
    assert (reply.body, reply.headers["content-type"]) == (b"Ollama is running", "text/plain; charset=utf-8")


def test_a_browser_gets_a_page() -> None:
    reply = asked("/", "text/html,application/xhtml+xml,*/*;q=0.8", console=True)
    assert reply.headers["content-type"].startswith("text/html")
    assert {'href="docs"', 'href="openapi.json"', 'href="console"'} <= set(
        re.findall(r'href="[^"]*"', reply.body.decode())
    )
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]


def test_every_file_of_the_docs_is_there() -> None:
    """And nothing of another host."""
    page = asked("/docs").body.decode()
    asked_for = re.findall(r'(?:src|href)="docs/([^"]*)"', page)
    assert {*FILES, "start.js"} == set(asked_for)
    assert "//" not in re.sub(r"<!doctype.*?>", "", page)
    for name in asked_for:
        assert asked(f"/docs/{name}").status == 200, name
    assert b"SwaggerUIBundle" in asked("/docs/swagger-ui-bundle.js").body


@pytest.mark.parametrize("name", ["none.js", "..%2F__init__.py", "index.html"])
def test_other_files_are_not_served(name: str) -> None:
    assert asked(f"/docs/{name}").status == 404
