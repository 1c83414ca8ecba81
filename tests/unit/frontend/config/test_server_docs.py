"""docs/server.md, docs/management.md and docs/inference.md name every flag, route, parameter and state."""

from __future__ import annotations

import logging.config
import re
from pathlib import Path
from typing import Any, cast, get_type_hints

import click
import msgspec
import pytest
import yaml
from starlette.applications import Starlette
from starlette.routing import Route

from msx_frontend.apis.torchserve.inference import InferenceRoutes
from msx_frontend.apis.torchserve.management import ManagementRoutes
from msx_frontend.apis.torchserve.openapi import INFERENCE, MANAGEMENT
from msx_frontend.apis.workflows.routes import inference_routes, management_routes
from msx_frontend.cli.main import main
from msx_frontend.errors import ServiceError
from msx_frontend.keys.api_keys_file import parse
from msx_frontend.models.registration import Registration
from msx_frontend.models.states import ModelState
from msx_frontend.net.http.gate import PROBES
from msx_frontend.workflows import errors as workflow_errors
from msx_sdk._internal.workflow_spec import NodeSettings
from msx_sdk.plugins import Endpoint, EndpointRequest

DOCS = Path(__file__).parents[4] / "docs"
SERVER, MANAGEMENT_PAGE, INFERENCE_PAGE = (
    (DOCS / f"{n}.md").read_text() for n in ("server", "management", "inference")
)
UNUSED = cast(Any, None)

MANAGEMENT_APP = ManagementRoutes(UNUSED, UNUSED, UNUSED, max_request_size=1).app()
INFERENCE_APP = InferenceRoutes(UNUSED).app()


def paths_of(app: Starlette) -> list[str]:
    return sorted({route.path for route in app.routes if isinstance(route, Route)})


def mentioned(page: str) -> set[str]:
    """The paths in backticks, with and without what is in brackets."""
    found: set[str] = set()
    for text in re.findall(r"`(/[^` ?]*)", page):
        while "[" in text:
            found.add(text.partition("[")[0])
            text = text.replace("[", "", 1)[::-1].replace("]", "", 1)[::-1]
        found.add(text)
    return found


@pytest.mark.parametrize("path", paths_of(MANAGEMENT_APP))
def test_every_management_route(path: str) -> None:
    assert path in mentioned(MANAGEMENT_PAGE)


@pytest.mark.parametrize("path", paths_of(INFERENCE_APP))
def test_every_inference_route(path: str) -> None:
    assert path.replace("{rest:path}", "{version}") in mentioned(INFERENCE_PAGE)


@pytest.mark.parametrize(("app", "table"), [(MANAGEMENT_APP, MANAGEMENT), (INFERENCE_APP, INFERENCE)])
def test_the_openapi_description_has_every_route(app: Starlette, table: Any) -> None:
    described = {
        operation.path.replace("model_name", "model").replace("model_version", "version") for operation in table
    }
    assert {path for path in paths_of(app) if "rest:path" not in path} <= described


@pytest.mark.parametrize("name", [f.name for f in msgspec.structs.fields(Registration) if f.name != "at_startup"])
def test_every_parameter_of_a_registration(name: str) -> None:
    assert f"`{name}`" in MANAGEMENT_PAGE


@pytest.mark.parametrize("flag", [flag for o in main.params if isinstance(o, click.Option) for flag in o.opts])
def test_every_flag(flag: str) -> None:
    assert f"`{flag}`" in SERVER


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_every_probe(probe: str) -> None:
    assert f"| `{probe}` |" in SERVER


@pytest.mark.parametrize("state", [state.value for state in ModelState if state is not ModelState.GONE])
def test_every_state(state: str) -> None:
    assert f"`{state}`" in MANAGEMENT_PAGE


def test_error_types() -> None:
    """Those of the page exist, with the statuses that it gives."""
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
    example = re.search(r"```yaml\n(keys:.*?)```", SERVER, re.DOTALL)
    assert example
    keys, short = parse(Path("docs/server.md"), example[1].encode())
    assert ([key.name for key in keys], short) == (["team-a", "batch", "operations"], [])


def test_the_log_configuration_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```yaml\n(version: .*?)```", SERVER, re.DOTALL)
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
    assert {name for name in names if f"`{name}`" not in SERVER} == set()


def test_every_route_of_workflows() -> None:
    page = mentioned((DOCS / "workflows.md").read_text())
    routes = [*inference_routes(UNUSED, 1, 1), *management_routes(UNUSED, 1)]
    assert {route.path for route in routes} <= page


@pytest.mark.parametrize("key", ["url", *(field.encode_name for field in msgspec.structs.fields(NodeSettings))])
def test_every_key_of_a_workflows_spec(key: str) -> None:
    assert f"`{key}`" in (DOCS / "workflows.md").read_text()


def test_every_error_of_workflows() -> None:
    page = (DOCS / "workflows.md").read_text()
    own = {kind for kind in subclasses(ServiceError) if kind.__module__ == workflow_errors.__name__}
    assert {kind.type for kind in own if f"| {kind.status} | `{kind.type}` |" not in page} == {
        "InternalServerException"
    }


@pytest.mark.parametrize("name", [*get_type_hints(Endpoint), *get_type_hints(EndpointRequest), "config", "models()"])
def test_every_name_of_plugins(name: str) -> None:
    assert f"`{name}`" in (DOCS / "plugins.md").read_text()
