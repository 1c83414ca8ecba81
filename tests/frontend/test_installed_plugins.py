"""Plugins are found by their entry points, and one that cannot be used is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from msx_frontend.apis.openapi.family import openapi
from msx_frontend.apis.plugins.family import PluginEndpoints
from msx_frontend.apis.plugins.view import config_view
from msx_frontend.apis.torchserve.description import described
from msx_frontend.assembly.families import first_segments
from msx_frontend.config import ServerConfig
from msx_frontend.installed_plugins import Plugin, PluginError, load_plugin, load_plugins, use_plugins_path
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.snapshots.serializer import SnapshotError
from msx_net.http.router import Router
from msx_sdk.plugins import ENDPOINTS, Endpoint, SavedSnapshot
from tests.frontend.apis.families import all_families
from tests.plugins import install_module

BEGIN = "from msx_sdk.plugins import Endpoint\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Folder of plugins; modules imported from it are forgotten afterwards."""
    before, modules = sys.path[:], set(sys.modules)
    yield tmp_path / "plugins"
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


OURS = first_segments(all_families())


def test_all_paths_of_all_listeners_are_taken() -> None:
    own = all_families()
    served = Router([described(own), openapi("MSX", own, lambda: (), None), *own], own[0])
    assert served.first_segments() <= OURS
    assert {"openapi.json", "api-description", "metrics", "v1", "v2", "models", "predictions", "generate"} <= OURS


@pytest.mark.parametrize("path", sorted(OURS))
def test_no_plugin_takes_a_path_of_the_server(path: str) -> None:
    class Own(Endpoint):
        pass

    Own.path = path
    made = PluginEndpoints([Plugin("own", "own (own:Own of own 1.0)", Own)], cast(Any, None), 1.0)
    with pytest.raises(PluginError, match=f"wants the path /{path}, which is the server's own"):
        made.families(OURS)


def endpoints(folder: Path) -> PluginEndpoints:
    use_plugins_path([folder])
    made = PluginEndpoints(load_plugins(ENDPOINTS), cast(Any, None), 1.0)
    made.families(OURS)
    return made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import nothing_of_this_name",
            "cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("raise SystemExit(3)", "cannot be loaded: it called sys.exit(3)"),
        ("class Other: pass", "cannot be loaded: AttributeError"),
        ("class It: path = 'x'", "is not a subclass of msx_sdk.plugins.Endpoint."),
        ("class It(Endpoint): pass", "path is None, not one segment of a path, without slashes."),
        ("class It(Endpoint): path = 'a/b'", "path is 'a/b', not one segment of a path, without slashes."),
        ("class It(Endpoint): path, listener = 'x', 'grpc'", "listener is 'grpc', not one of inference, management, "),
        ("class It(Endpoint): path = 'models'", "wants the path /models, which is the server's own."),
        (
            "class It(Endpoint):\n path = 'x'\n def __init__(self, server): raise OSError('full')",
            "cannot be started: OSE",
        ),
    ],
)
def test_an_endpoint_that_cannot_be_used(folder: Path, text: str, message: str) -> None:
    install_module(folder, "broken", f"{BEGIN}{text}\n", endpoints={"it": "broken:It"})
    with pytest.raises(PluginError) as raised:
        endpoints(folder)
    assert str(raised.value).startswith("The plugin it (broken:It of broken 1.0)")
    assert message in str(raised.value)


def test_two_endpoints_of_one_path(folder: Path) -> None:
    points = {"one": "twice:It", "two": "twice:It"}
    install_module(folder, "twice", f"{BEGIN}class It(Endpoint): path = 'x'\n", endpoints=points)
    with pytest.raises(PluginError, match=r"The plugins one \(.*\) and two \(.*\) both want the path /x\."):
        endpoints(folder)


def test_keys_are_those_of_the_listener(folder: Path) -> None:
    answers = " def do_get(self, request): pass\n"
    heads: tuple[str, ...] = ("A(Endpoint): path = 'a'", "B(Endpoint): path, listener = 'b', 'management'")
    heads += ("C(Endpoint): path, open = 'c', True", "D(Endpoint): path, listener = 'd', 'metrics'")
    text = BEGIN + "".join(f"class {head}\n{answers}".replace(": path", ":\n path") for head in heads)
    install_module(folder, "four", text, endpoints={name: f"four:{name}" for name in "ABCD"})
    found = endpoints(folder).families(())
    keys = {family.listener: {route.path: route.key for route in family.routes} for family in found}
    assert keys == {
        "inference": {"/a": "inference", "/a/{rest:path}": "inference", "/c": None, "/c/{rest:path}": None},
        "management": {"/b": "management", "/b/{rest:path}": "management"},
        "metrics": {"/d": None, "/d/{rest:path}": None},
    }


def test_the_servers_own_paths() -> None:
    assert {"models", "predictions", "v1", "metrics", "workflows", "wfpredict", "generate", "ping"} <= OURS


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"plugins_path \(--plugins-path\): .*absent is not an existing folder"):
        use_plugins_path([tmp_path / "absent"])


def test_a_name_that_no_process_has() -> None:
    with pytest.raises(PluginError, match=r"^it: the group msx\.nothing does not have a plugin absent \(found: none\)"):
        load_plugin("msx.nothing", "absent", "it")


SERIALIZER = """
class Broken:
    def __init__(self, config):
        if "broken" in config:
            raise ValueError(config["broken"])

    def save(self, snapshot):
        raise ValueError("save")

    def get(self, name):
        raise KeyError(name)

    def get_last(self):
        raise SystemExit(3)
"""


def test_a_place_for_snapshots_is_named_in_its_errors(folder: Path) -> None:
    install_module(folder, "places", SERIALIZER, snapshots={"it": "places:Broken"})
    use_plugins_path([folder])
    made = make_serializer({}, "it", {})
    for call, message in (
        (lambda: made.save(SavedSnapshot("n", {})), "failed: ValueError: save. --ncs starts without snapshots."),
        (lambda: made.get("n"), "has no snapshot n: KeyError"),
        (made.get_last, "cannot read its last snapshot: "),
        (lambda: make_serializer({}, "it", {"broken": "yes"}), "cannot be started: ValueError: yes"),
    ):
        with pytest.raises(SnapshotError) as raised:
            call()
        assert str(raised.value).startswith(f"The plugin it (places:Broken of places 1.0) {message}")


def test_the_settings_that_plugins_see() -> None:
    view = config_view(ServerConfig(keystore_pass="secret"))
    assert "secret" not in "".join(view.values())
    assert view["inference_address"] == "http://127.0.0.1:8080"
