"""A hub that redirects to addresses which only the server reaches: of its own machine, private, and of a metadata
service. A network namespace has them all, and a public address for the hub."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.machines import ip, visiting
from tests.e2e.server import RunningServer, new_store, run_server
from tests.hub_server import Repository, hub_server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="root makes network namespaces"),
]

PUBLIC = "9.9.9.9"
LOOPBACK, PRIVATE, METADATA = "127.0.0.1", "10.77.0.1", "169.254.169.254"
INSIDE = "is of this machine or a private network, to which a public host may not redirect"
WITHIN = {
    LOOPBACK: f"{LOOPBACK} {INSIDE}",
    PRIVATE: f"{PRIVATE} {INSIDE}",
    METADATA: f"{METADATA} is a metadata service of clouds, which is never asked",
}
"""Targets, with the reason why each is not asked."""
LISTING, HANDLER, WEIGHTS = "", "handler.py", "weights.bin"
MODEL = Repository({HANDLER: b"def handle(data, context):\n    return data\n", WEIGHTS: bytes(1 << 20)})


@contextmanager
def internet() -> Iterator[None]:
    """This thread, and what it starts, is on a machine that has all these addresses, and reaches no others."""
    name = f"msxhub{os.getpid()}"
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        for address in (PUBLIC, PRIVATE, METADATA):
            ip("-n", name, "addr", "add", f"{address}/32", "dev", "lo")
        with visiting(name):
            yield
    finally:
        ip("netns", "del", name)


def files_of(server: RunningServer) -> set[Path]:
    """Files of the state that hold something; a folder's lock has no bytes."""
    return {path for path in server.state.rglob("*") if path.is_file() and path.stat().st_size}


def test_it_leads_nowhere(tmp_path: Path) -> None:
    """By its listing or by a file: the target is not asked. Only what the hub itself gave stays for a next attempt."""
    new_store(tmp_path)
    with internet(), ExitStack() as stack:
        hub = stack.enter_context(hub_server(PUBLIC))
        targets = {address: stack.enter_context(hub_server(address)) for address in WITHIN}
        for one in (hub, *targets.values()):
            one.repositories["org/name"] = MODEL
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        server = stack.enter_context(run_server(tmp_path, env=env, fork=False))
        before = files_of(server)
        for name, given in {LISTING: set(), WEIGHTS: {HANDLER}}.items():
            for address, reason in WITHIN.items():
                hub.redirects = {name: targets[address].url}
                reply = server.management.post("/models", params={"url": "hf://org/name", "initial_workers": "1"})
                assert (reply.status_code, reason in reply.text) == (400, True), reply.text
                assert targets[address].asked == []
            assert {path.name for path in files_of(server) - before} == given
        assert server.management.get("/models").json()["models"] == []
        hub.redirects = {}
        assert server.management.post("/models", params={"url": "hf://org/name"}).status_code == 200
