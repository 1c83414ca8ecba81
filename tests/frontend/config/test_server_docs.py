"""The pages of the server (server, keys, logs, management, inference) name every flag, route, parameter and state."""

from __future__ import annotations

import logging.config
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import click
import msgspec
import pytest
import yaml

from msx_core.service_errors import ServiceError
from msx_core.workflow_spec import NodeSettings
from msx_frontend.apis.openapi.family import openapi
from msx_frontend.apis.probes.family import PATHS as PROBES
from msx_frontend.apis.torchserve.description import described
from msx_frontend.cli.main import main
from msx_frontend.keys.api_keys_file import parse
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workflows import errors as workflow_errors
from msx_net.http.router import Router
from msx_sdk.plugins import Endpoint, EndpointRequest
from tests.frontend.apis.families import all_families, of_listener

DOCS = Path(__file__).parents[3] / "docs"
SERVER, KEYS, LOGS, MANAGEMENT_PAGE, INFERENCE_PAGE = (
    (DOCS / f"{n}.md").read_text() for n in ("server", "keys", "logs", "management", "inference")
)
METHODS = {"any", "GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"}
PAGES = ("server", "inference", "management", "metrics", "workflows", "kserve", "language-models", "from-llm-serving")
FURTHER_PAGES = ("anthropic", "responses", "jobs", "batches", "ollama", "cohere", "vllm-routes", "from-torchserve-vllm")


def paths_of(listener: str) -> list[str]:
    """Paths of routes that are described."""
    return sorted({route.path for family in of_listener(listener) for route in family.routes if route.summary})


def unnamed(path: str) -> str:
    return re.sub(r"{[\w:]+}", "{}", path)


def mentioned(page: str) -> set[str]:
    """The paths in backticks, with and without each part in brackets."""
    return {path for text in re.findall(r"`(/[^` ?]*)", page) for path in with_and_without(text)}


def with_and_without(text: str) -> set[str]:
    inner = re.search(r"\[([^\[\]]*)\]", text)
    if inner is None:
        return {text}
    before, after = text[: inner.start()], text[inner.end() :]
    return with_and_without(before + inner[1] + after) | with_and_without(before + after)


@pytest.mark.parametrize("path", [*paths_of("inference"), *paths_of("management"), *paths_of("metrics")])
def test_every_route_of_every_family(path: str) -> None:
    pages = ((DOCS / f"{name}.md").read_text() for name in (*PAGES, *FURTHER_PAGES))
    assert unnamed(path) in {unnamed(known) for page in pages for known in mentioned(page)}


def served() -> Router:
    """All listeners in one, with what describes them."""
    own = all_families()
    own = [described(own), *own]
    own = [openapi("MSX", own, lambda: (), None), *own]
    return Router(own, own[0])


def rows_of_tables() -> Iterator[tuple[str, set[str], set[str]]]:
    """Rows of each page's tables: the methods and paths of each row that begins with methods."""
    for page in sorted(DOCS.glob("*.md")):
        for methods, paths in re.findall(r"^\|([^|]*)\|([^|]*)\|", page.read_text(), re.MULTILINE):
            if (named := set(re.findall(r"\w+", methods))) and named <= METHODS:
                yield page.name, named, mentioned(paths)


@pytest.mark.parametrize(("page", "methods", "paths"), list(rows_of_tables()))
def test_every_row_of_a_table_of_routes_is_served(page: str, methods: set[str], paths: set[str]) -> None:
    router = served()
    asked = {"GET", "POST", "PUT", "DELETE"} if methods == {"any"} else methods
    found = {(method, path) for method in asked for path in paths if router.find(method, path).route is not None}
    assert {method for method, _ in found} == asked
    assert {path for _, path in found} == paths


INTERNAL = ("adapters", "at_startup", "rows_compared", "servable", "sleep_level", "stage_workers")
"""Options of registrations that no client can give."""


def test_the_tables_are_found() -> None:
    assert {page for page, *_ in rows_of_tables()} >= {
        "inference.md",
        "kserve.md",
        "language-models.md",
        "management.md",
        "workflows.md",
    }


@pytest.mark.parametrize("name", [f.name for f in msgspec.structs.fields(Registration) if f.name not in INTERNAL])
def test_every_parameter_of_a_registration(name: str) -> None:
    assert f"`{name}`" in MANAGEMENT_PAGE


@pytest.mark.parametrize(
    "flag", [flag for o in main.params if isinstance(o, click.Option) and not o.hidden for flag in o.opts]
)
def test_every_flag(flag: str) -> None:
    assert re.search(f"`{flag}[` ]", SERVER)


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_every_probe(probe: str) -> None:
    assert f"| `{probe}` |" in SERVER


@pytest.mark.parametrize("state", [state.value for state in ModelState if state is not ModelState.GONE])
def test_every_state(state: str) -> None:
    assert f"`{state}`" in MANAGEMENT_PAGE


def test_error_types() -> None:
    """Error types of the page exist, with the statuses that it gives."""
    rows = re.findall(r"^\| ([\d, ]+) \| (`\w+`(?:, `\w+`)*) \|", MANAGEMENT_PAGE, re.MULTILINE)
    known = {(kind.status, kind.type) for kind in subclasses(ServiceError)} | {(507, "InternalServerException")}
    given = {
        (int(status), name)
        for statuses, names in rows
        for status in statuses.split(", ")
        for name in re.findall(r"\w+", names)
    }
    assert len(given) > 10
    assert given <= known


def subclasses(kind: type[ServiceError]) -> set[type[ServiceError]]:
    return {kind}.union(*(subclasses(below) for below in kind.__subclasses__()))


def test_the_keys_file_works() -> None:
    example = re.search(r"```yaml\n(keys:.*?)```", KEYS, re.DOTALL)
    assert example
    keys, short = parse(Path("docs/keys.md"), example[1].encode())
    assert ([key.name for key in keys], short) == (["team-a", "batch", "operations"], [])


def test_the_log_configuration_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```yaml\n(version: .*?)```", LOGS, re.DOTALL)
    assert example
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load(example[1])
    logger = logging.getLogger("msx.access")
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logging.config.dictConfig({"disable_existing_loggers": False, **config})
    try:
        logger.info("a request")
        logging.getLogger("msx.server").info("started")
    finally:
        for handler in (*logger.handlers, *root.handlers):
            handler.close()
        root.handlers[:], root.level = before
        logger.handlers, logger.propagate = [], True
    assert (tmp_path / "access.log").read_text() == "a request\n"
    assert '"message": "started"' in (tmp_path / "server.log").read_text()


def test_every_logger() -> None:
    sources = (DOCS.parent / "frontend").rglob("*.py")
    names = {name for path in sources for name in re.findall(r'getLogger\("(msx[\w.]*)"\)', path.read_text())}
    assert {name for name in names if f"`{name}`" not in LOGS} == set()


@pytest.mark.parametrize("key", ["url", *(field.encode_name for field in msgspec.structs.fields(NodeSettings))])
def test_every_key_of_a_workflows_spec(key: str) -> None:
    assert f"`{key}`" in (DOCS / "workflows.md").read_text()


def test_every_error_of_workflows() -> None:
    page = (DOCS / "workflows.md").read_text()
    own = {kind for kind in subclasses(ServiceError) if kind.__module__ == workflow_errors.__name__}
    assert {kind.type for kind in own if f"| {kind.status} | `{kind.type}` |" not in page} == set()


@pytest.mark.parametrize("name", [*get_type_hints(Endpoint), *get_type_hints(EndpointRequest), "config", "models()"])
def test_every_name_of_plugins(name: str) -> None:
    assert f"`{name}`" in (DOCS / "plugins.md").read_text()
