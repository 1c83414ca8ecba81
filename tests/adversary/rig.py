"""A real server with small models, its listeners as doors, and keys that can be withdrawn."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.adversary.asks import VERSION, Ask, lists
from tests.adversary.wires import Http1, Http2, Wire, answer_to
from tests.certificates import Certificate, write_pem
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.free_ports import free_port
from tests.soak.client import RawClient

MODELS = {"echo": "echo", "typed": "typed", "methods": "methods", "parrot": "parrot", "labels": "letters:Labels"}
NEIGHBOUR, VICTIM = "neighbour", "victim"
"""Models of their own: of the client that must not suffer, and of calls that change models."""

KEYS = {kind: f"{kind}-of-the-adversary" for kind in ("inference", "management", "API")}
GUEST = "the-key-that-is-withdrawn"
"""Good for all, until it is withdrawn."""
NEIGHBOURS = "the-key-of-the-neighbour"
ALLOWED = "allowed"
"""The folder from which archives may come, beside the model store."""

LARGEST_REQUEST = 1_000_000
"""Bytes."""
LIMITS = f"""
max_request_size={LARGEST_REQUEST}
request_head_timeout=2
request_body_grace=2
keep_alive_timeout=5
http2_ping_interval=5
http2_ping_timeout=5
tls_handshake_timeout=2
max_connections=3000
max_queued_bytes=100000000
keep_tokens=true
"""
"""Short ones, so that each comes to act."""

WHOLE = "separate"
"""All routes and methods are attacked there; of each family and service one in the other setups."""
SETUPS = {
    WHOLE: "",
    "merged, TLS, grpc.aio": "inference_address=https://127.0.0.1:{port}\nmanagement_address=https://127.0.0.1:{port}\n"
    "private_key_file={key}\ncertificate_file={certificate}\ngrpc_transport=grpcio\n",
    "sockets, gRPC over TLS": "inference_address=unix:{folder}/i.sock\nmanagement_address=unix:{folder}/m.sock\n"
    "metrics_address=unix:{folder}/x.sock\nenable_grpc_ssl=true\n"
    "private_key_file={key}\ncertificate_file={certificate}\n",
}


class Door(NamedTuple):
    """A listener of the server. `listeners`: those whose families and services it has."""

    name: str
    address: str
    listeners: tuple[str, ...]
    grpc: bool = False
    """It has gRPC services alone."""
    certificate: str = ""
    """PEM; "" where it speaks clear text."""
    library: bool = False
    """grpc.aio has it, which waits for slow clients until they leave."""

    async def connect(self, wire: type[Http1] | type[Http2] = Http1) -> Wire:
        return wire(await RawClient.connect(self.address, self._tls("h2" if wire is Http2 else "http/1.1")))

    def _tls(self, protocol: str) -> ssl.SSLContext | None:
        if not self.certificate:
            return None
        context = ssl.create_default_context(cadata=self.certificate)
        context.set_alpn_protocols([protocol])
        return context

    def has(self, ask: Ask) -> bool:
        return ask.listener in self.listeners and (ask.grpc or not self.grpc)

    def key_for(self, ask: Ask) -> str:
        """ "" where it needs none, as on the listener for metrics alone."""
        return KEYS[ask.key] if ask.key and self.listeners != ("metrics",) else ""


class Attack(NamedTuple):
    """One ask at one door over one version of HTTP, by the client who has this key."""

    ask: Ask
    door: Door
    wire: type[Http1] | type[Http2]
    key: str

    @property
    def name(self) -> str:
        return f"{self.ask.name} at {self.door.name} over {self.wire.__name__}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Wire]:
        wire = await self.door.connect(self.wire)
        try:
            yield wire
        finally:
            wire.client.leave(reset=True)


class Rig(NamedTuple):
    server: RunningServer
    doors: Sequence[Door]
    attacks: Sequence[Attack]
    """Every ask at every door that has it, over each version of HTTP; of some setups one of each family."""

    def restore(self) -> None:
        """The victim is as at the start, whatever an attack has made of it."""
        self.server.management.delete(f"/models/{VICTIM}")
        reply = self.server.management.post("/models", params={"url": f"{VICTIM}.mar", "initial_workers": "1"})
        assert reply.status_code == 200, reply.text

    def withdraw(self) -> None:
        """Returns when the guest's key opens nothing any more."""
        write_keys(self.server.folder, guest=False)
        self._until_guest(400)

    def readmit(self) -> None:
        write_keys(self.server.folder)
        self._until_guest(200)

    def _until_guest(self, status: int) -> None:
        def told() -> bool:
            headers = {"authorization": f"Bearer {GUEST}"}
            return self.server.inference.get("/ping", headers=headers).status_code == status

        wait_until(told, f"the guest's key is answered with {status}", self.server.tail)


def write_keys(folder: Path, *, guest: bool = True) -> None:
    entries: list[dict[str, Any]] = [{"name": kind, "key": key, "kind": kind} for kind, key in KEYS.items()]
    entries += [{"name": "neighbour", "key": NEIGHBOURS, "kind": ["inference", "management"]}]
    entries += [{"name": "guest", "key": GUEST, "kind": [*KEYS]}] if guest else []
    file = folder / "keys.json"
    aside = folder / "keys.new"
    aside.write_text(json.dumps({"keys": entries}))
    aside.chmod(0o600)
    aside.replace(file)


def pack_models(store: Path) -> list[str]:
    services = {**MODELS, NEIGHBOUR: "echo", VICTIM: "echo"}
    for model, service in services.items():
        name, _, function = service.partition(":")
        pack_service(name, store, model=model, version=VERSION, function=function, config="minWorkers: 1\n")
    return [f"{model}.mar" for model in services]


@contextmanager
def run_rig(folder: Path, setup: str) -> Iterator[Rig]:
    archives = pack_models(new_store(folder))
    write_keys(folder)
    key, certificate = write_pem(Certificate.make(), folder)
    own = SETUPS[setup].format(port=free_port(), folder=folder, key=key, certificate=certificate)
    (folder / ALLOWED).mkdir()
    files = f"api_keys_file={folder / 'keys.json'}\nallowed_urls=file://{folder}/{ALLOWED}/.*\n"
    with run_server(folder, "--models", *archives, properties=f"{LIMITS}{files}{own}", tokens=True) as server:
        for client in (server.inference, server.management, server.metrics):
            client.headers["authorization"] = f"Bearer {NEIGHBOURS}"
        doors = doors_of(server, own)
        yield Rig(server, doors, asyncio.run(_attacks(folder, doors, whole=setup == WHOLE)))


def doors_of(server: RunningServer, properties: str) -> list[Door]:
    merged = server.info["inference"] == server.info["management"]
    tls = server.info["certificate"] or ""
    grpc_tls = tls if "enable_grpc_ssl=true" in properties else ""
    rest = {"inference": ("inference", "management", "metrics") if merged else ("inference",)}
    rest |= {} if merged else {"management": ("management",)}
    rest["metrics"] = ("metrics",)
    found = [Door(name, server.info[name], has, certificate=_of_tls(server, name)) for name, has in rest.items()]
    library = "grpc_transport=grpcio" in properties
    grpc = ("inference", "management")
    return [*found, *(Door(f"grpc_{one}", server.info[f"grpc_{one}"], (one,), True, grpc_tls, library) for one in grpc)]


def _of_tls(server: RunningServer, name: str) -> str:
    return server.info["certificate"] if server.info[name].startswith("https:") else ""


async def _attacks(folder: Path, doors: Iterable[Door], *, whole: bool) -> list[Attack]:
    """Each ask about the model that accepts it, if one does."""
    own = folder / "lists"
    own.mkdir()
    async with lists(own) as found:
        of_models = [found.asks(model) for model in (*MODELS, VICTIM)]
    chosen = [await _accepted(asks, doors) for asks in zip(*of_models, strict=True)]
    attacks = list(at_doors(chosen, doors))
    if whole:
        return attacks
    return list({(attack.ask.family, attack.door, attack.wire): attack for attack in attacks}.values())


def at_doors(asks: Iterable[Ask], doors: Iterable[Door]) -> Iterator[Attack]:
    for ask in asks:
        for door in doors:
            if door.has(ask):
                wires = (Http2,) if ask.grpc else (Http1, Http2)
                yield from (Attack(ask, door, wire, door.key_for(ask)) for wire in wires)


async def _accepted(asks: Sequence[Ask], doors: Iterable[Door]) -> Ask:
    """The first one that is; calls that change something are made about the victim alone."""
    if asks[0].key == "management":
        return asks[-1]
    door = next(door for door in doors if door.has(asks[0]))
    for ask in asks[:-1]:
        attack = Attack(ask, door, Http2 if ask.grpc else Http1, door.key_for(ask))
        async with attack.connected() as wire:
            if (await answer_to(wire, ask, attack.key)).accepted:
                return ask
    return asks[0]
