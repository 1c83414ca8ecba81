"""Three servers behind a balancer, with one model store that none of them can write, and one keys file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from tests.e2e.balancer import Balancer, balancing
from tests.e2e.server import WATCHDOG, RunningServer, pack_service, run_server, start_server, wait_until
from tests.e2e.test_grpc import Request, Response

pytestmark = pytest.mark.e2e

FIRST, SECOND = "clients-0123456789abcdef", "clients-fedcba9876543210"
CLIENTS = 3
"""Clients of each protocol."""


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody can write into the folder: root, too, where mounts are allowed."""
    before = listing(folder)
    mounted = os.geteuid() == 0 and all(
        subprocess.run(["mount", *step, str(folder)], capture_output=True, check=False).returncode == 0
        for step in (["--bind", str(folder)], ["-o", "remount,bind,ro"])
    )
    if not mounted:
        folder.chmod(0o555)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.chmod(0o755)
    assert listing(folder) == before


def listing(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def write_keys(file: Path, *keys: str) -> None:
    aside = file.with_name("aside")
    entries = [{"name": f"clients-{at}", "key": key, "kind": "inference"} for at, key in enumerate(keys)]
    aside.write_text(json.dumps({"keys": entries}))
    aside.chmod(0o400)
    aside.replace(file)


Ask = Callable[[bytes], "str | None"]


class Load:
    """Clients that ask one request after the other. One that was refused, or was not begun, they ask again."""

    def __init__(self, begun: Path, key: str) -> None:
        self._begun, self._key = begun, key
        self._numbers, self._over = count(), threading.Event()
        self.answered: Counter[str] = Counter()
        self.lost: list[str] = []
        """A server had begun them and did not answer."""
        self.wrong: list[str] = []

    def run(self, protocol: str, make: Callable[[], AbstractContextManager[Ask]]) -> None:
        """`make` gives a client's function: it returns None for a refusal, and raises where the connection breaks."""
        with make() as ask:
            while not self._over.is_set():
                id = f"{protocol}-{next(self._numbers)}"
                while not self._asked(id, protocol, ask):
                    pass

    def _asked(self, id: str, protocol: str, ask: Ask) -> bool:
        """Whether nothing is left to do for it."""
        try:
            answer = ask(json.dumps({"id": id, "file": str(self._begun)}).encode())
        except (httpx.TransportError, grpc.RpcError):
            if id not in self.begun():
                return False
            self.lost.append(id)
            return True
        if answer is None:
            return False
        self.answered[protocol] += 1
        if answer != id:
            self.wrong.append(f"{id}: {answer}")
        return True

    def begun(self) -> Counter[str]:
        return Counter(self._begun.read_text().split()) if self._begun.exists() else Counter()

    def stop(self) -> None:
        self._over.set()

    def wait_for_more(self, number: int = 30) -> None:
        """Over both protocols."""
        goals = {protocol: self.answered[protocol] + number for protocol in ("http", "grpc")}
        wait_until(lambda: all(self.answered[one] >= goal for one, goal in goals.items()), "more are answered")


@contextmanager
def http_client(address: str, key: str) -> Iterator[Ask]:
    client = httpx.Client(base_url=f"http://{address}", headers={"Authorization": f"Bearer {key}"}, timeout=WATCHDOG)

    def ask(body: bytes) -> str | None:
        reply = client.post("/predictions/recorded", content=body, headers={"content-type": "application/json"})
        if reply.status_code == 503:
            assert reply.headers["connection"] == "close"
            return None
        assert reply.status_code == 200, reply.text
        return reply.text

    with client:
        yield ask


@contextmanager
def grpc_client(address: str, key: str) -> Iterator[Ask]:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 100)]
    channel = grpc.insecure_channel(address, options)
    call = channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, Response.FromString)
    metadata = (("protocol", "gRPC"), ("authorization", f"Bearer {key}"))

    def ask(body: bytes) -> str | None:
        request = Request(model_name="recorded", input={"body": body})
        return str(call(request, metadata=metadata, timeout=WATCHDOG, wait_for_ready=True).prediction.decode())

    with channel:
        yield ask


def test_replicas_share_a_store_and_keys(tmp_path: Path) -> None:
    store, secret = tmp_path / "models", tmp_path / "secret"
    store.mkdir()
    secret.mkdir()
    pack_service("recorded", store)
    keys = secret / "keys.json"
    write_keys(keys, FIRST)
    with ExitStack() as parts:
        parts.enter_context(read_only(store))
        flags = ["--models", "recorded.mar", "--model-store", str(store)]
        folders = [tmp_path / name for name in ("one", "two", "three")]
        for folder in folders:
            folder.mkdir()
        states = [("--state-dir", str(folder / "state")) for folder in folders]
        settings = f"api_keys_file={keys}\ncache_dir={tmp_path / 'shared'}\n"
        killed = start_server(folders[0], *flags, *states[0], properties=settings, tokens=True)
        others = [
            parts.enter_context(run_server(folder, *flags, *state, properties=settings, tokens=True))
            for folder, state in zip(folders[1:], states[1:], strict=True)
        ]
        killed.wait_ready()
        replicas = [killed, *others]
        with under_load(tmp_path / "begun", replicas) as (load, http, grpc_balancer):
            load.wait_for_more()
            for replica in replicas:
                wait_until(lambda replica=replica: served(replica) > 3, "each replica serves")  # type: ignore[misc]
            rotate(keys, replicas)
            load.wait_for_more()
            killed.process.send_signal(signal.SIGSTOP)  # it begins nothing more
            held = http.open[address_of(killed)] + grpc_balancer.open[killed.info["grpc_inference"]]
            killed.kill()
            load.wait_for_more()
            lost = [*load.lost]
            assert len(lost) <= held, "only what was in flight on the killed server"
            assert others[0].terminate() == 0
            load.wait_for_more()
            assert load.lost == lost, "a server that stops loses none"
        assert len([entry for entry in (tmp_path / "shared" / "models").iterdir() if entry.is_dir()]) == 1
        assert load.wrong == []
        assert max(load.begun().values()) == 1, "nothing was done twice"
        killed.close()


def rotate(keys: Path, replicas: list[RunningServer]) -> None:
    """A second key, which every replica takes; the first one stays for the load."""
    write_keys(keys, FIRST, SECOND)
    headers = {"Authorization": f"Bearer {SECOND}"}
    for replica in replicas:
        url = f"{replica.info['inference']}/ping"
        wait_until(lambda url=url: httpx.get(url, headers=headers).status_code == 200, "the key opens")  # type: ignore[misc]


def served(replica: RunningServer) -> float:
    return replica.metric("msx_requests_total", model="recorded", code="200")


def address_of(replica: RunningServer) -> str:
    return str(replica.info["inference"].rpartition("/")[2])


@contextmanager
def under_load(begun: Path, replicas: list[RunningServer]) -> Iterator[tuple[Load, Balancer, Balancer]]:
    load = Load(begun, FIRST)
    with (
        balancing([address_of(one) for one in replicas]) as http,
        balancing([one.info["grpc_inference"] for one in replicas]) as grpc_balancer,
        ThreadPoolExecutor(2 * CLIENTS) as pool,
    ):
        asked = [
            pool.submit(load.run, protocol, lambda make=make, to=to: make(to.address, FIRST))  # type: ignore[misc]
            for protocol, make, to in (("http", http_client, http), ("grpc", grpc_client, grpc_balancer))
            for _ in range(CLIENTS)
        ]
        try:
            yield load, http, grpc_balancer
        finally:
            load.stop()
        for one in asked:
            one.result()
