"""Models of hubs on a real server: registered with progress, predicted, kept over a restart; and `msx-serve hf://…`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_client import Client, MsxError
from tests.e2e.server import RunningServer, new_store, run_server
from tests.e2e.test_serve_path import served
from tests.forked import run_forked
from tests.hub_server import HubServer, Repository, hub_server
from tests.other_user import UID, needs_root, open_folder, others_python

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HANDLER = b"def handle(data, context):\n    return [bytes(one['body'])[::-1] for one in data]\n"
FETCHING = "LOADING: fetching hf://org/reverse"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        server.repositories["org/reverse"] = Repository({"handler.py": HANDLER, "weights.bin": bytes(4 << 20)})
        yield server


def client_of(server: RunningServer, *, rpc: bool) -> Client:
    ways = ("grpc://" + server.info["grpc_inference"], "grpc://" + server.info["grpc_management"])
    inference, management = ways if rpc else (server.info["inference"], server.info["management"])
    return Client(inference, management_url=management, key_file=server.info.get("key_file"))


def environment(hub: HubServer, folder: Path) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "NO_PROXY": "*"}


def test_registered_and_restored(hub: HubServer, tmp_path: Path) -> None:
    new_store(tmp_path)
    hub.gate.clear()
    with run_server(tmp_path, env=environment(hub, tmp_path)) as server, client_of(server, rpc=True) as client:
        phases: list[str] = []

        def told(phase: str) -> None:
            phases.append(phase)
            if "MiB of 4.0 MiB" in phase:
                hub.gate.set()

        client.models.register("hf://org/reverse", model="reverse", workers=1, progress=told)
        assert any(phase.startswith(f"{FETCHING}: 2.0 MiB of 4.0 MiB") for phase in phases)
        assert client.predict("reverse", b"abc") == b"cba"
        [described] = client.models.describe("reverse")
        assert described["modelUrl"] == "hf://org/reverse@" + "a" * 40
    hub.asked.clear()
    with run_server(tmp_path, env=environment(hub, tmp_path)) as server, client_of(server, rpc=False) as client:
        client.models.wait_ready("reverse")
        assert client.predict("reverse", b"abc") == b"cba"
        assert hub.asked == []
        client.models.unregister("reverse")
        with pytest.raises(MsxError, match="the hub does not have it"):
            client.models.register("hf://org/other")


def test_served_in_the_foreground(hub: HubServer, tmp_path: Path) -> None:
    env = {**environment(hub, tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with served(tmp_path, "hf://org/reverse", **env) as server:
        server.wait_said("reverse is ready.")
        assert "reverse: hf://org/reverse@" + "a" * 40 in server.said
        assert server.ask("reverse") == b"x"
    hub.asked.clear()
    with served(tmp_path, "hf://org/reverse", HF_HUB_OFFLINE="1", **env) as server:
        server.wait_said("reverse is ready.")
    assert hub.asked == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["hf://a/b/c"], "hf://a/b/c is not a URL of the form hf://org/name"),
        (["hf://org/reverse", "--reload"], "--reload watches files of this machine"),
        (["hf://org/reverse", "--set", "allowed_urls=s3://.*"], "does not match any allowed URL(s)"),
        (["hf://org/reverse", "--set", "hub_offline=true"], "and hub_offline forbids to ask the hub"),
    ],
)
def test_refused(arguments: list[str], why: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "msx_frontend.cli.main", *arguments]
    done = run_forked(command, cwd=tmp_path)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@needs_root
def test_workers_of_another_user_read_it(hub: HubServer) -> None:
    python, env = others_python()
    properties = f"python={python}\nworker_user={UID}\n"
    with open_folder() as folder:
        new_store(folder)
        more = {**env, **environment(hub, folder)}
        with run_server(folder, "--models", "hf://org/reverse", properties=properties, env=more) as server:
            assert server.predict("reverse", b"abc").content == b"cba"
