"""A real server on free ports, and the proof at its end that nothing is left of it."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_frontend.assembly.pid_file import NAME as PID_FILE
from tests.forked import NAME as FORKS
from tests.forked import ForkingPopen
from tests.lines import whole_lines
from tests.processes import alive, children_of, environment_of, name_of
from tests.prometheus import samples

SERVICES = Path(__file__).parents[1] / "services"
GRPC_TRANSPORTS = {"own": "", "grpcio": "grpc_transport=grpcio\n"}
"""Lines of config.properties for the two ways in which predictions over HTTP, and gRPC, are answered."""

WATCHDOG = 240.0
"""Seconds after which a test that waits for something is stuck."""
NO_SURPLUS = httpx.Limits()
"""Keep all connections. Among several threads, one that closes an idle connection which is more than may be kept closes
it also where another thread is just about to use it (httpcore 1.0): "Bad file descriptor"."""


def pack_service(
    name: str, folder: Path, *, config: str | None = None, version: str = "1.0", model: str = "", function: str = ""
) -> Path:
    """An archive of one of tests/services; `function` is the one of several handlers in the file."""
    config_file = None
    if config is not None:
        config_file = folder / f"{model or name}-{version}-config.yaml"
        config_file.write_text(config)
    return pack(
        PackOptions(
            model_name=model or name,
            version=version,
            handler=str(SERVICES / f"{name}.py") + (f":{function}" if function else ""),
            config_file=str(config_file) if config_file else None,
            export_path=folder,
            force=True,
        )
    )


class RunningServer:
    """A server as tests use it: requests of both kinds, its processes, its files."""

    def __init__(self, process: subprocess.Popen[Any], info: dict[str, Any], folder: Path, log: Path) -> None:
        self.process, self.info, self.folder, self.log = process, info, folder, log
        keys = json.loads(Path(info["key_file"]).read_text()) if info["key_file"] else None
        self.keys = keys
        certificate = info.get("certificate")
        self.inference = client_of(info["inference"], keys and keys["inference"]["key"], certificate)
        self.management = client_of(info["management"], keys and keys["management"]["key"], certificate)
        self.metrics = client_of(info["metrics"] or info["inference"], None, certificate)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def state(self) -> Path:
        return Path(self.info["state_dir"])

    def predict(self, model: str, content: Any = b"", **kwargs: Any) -> httpx.Response:
        if not isinstance(content, (bytes, str)):
            return self.inference.post(f"/predictions/{model}", json=content, **kwargs)
        return self.inference.post(f"/predictions/{model}", content=content, **kwargs)

    def register(self, archive: Path, **parameters: Any) -> httpx.Response:
        parameters = {"url": archive.name, "initial_workers": 1, **parameters}
        return self.management.post("/models", params=parameters)

    def describe(self, model: str, version: str = "") -> dict[str, Any]:
        reply = self.management.get(f"/models/{model}" + (f"/{version}" if version else ""))
        assert reply.status_code == 200, reply.text
        described: dict[str, Any] = reply.json()[0]
        return described

    def versions(self, model: str) -> list[dict[str, Any]]:
        described: list[dict[str, Any]] = self.management.get(f"/models/{model}/all").json()
        return described

    def log_lines(self) -> list[dict[str, Any]]:
        """The JSON lines of the log."""
        return [json.loads(line) for line in whole_lines(self.log) if line.startswith("{")]

    def worker_pids(self, model: str) -> list[int]:
        return [worker["pid"] for worker in self.describe(model)["workers"] if "pid" in worker]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that bear these labels."""
        found = samples(self.metrics.get("/metrics").text)
        return sum(value for known, own, value in found if known == name and labels.items() <= own.items())

    def unpacked(self) -> list[str]:
        """The archives in the cache, by their digests."""
        return [entry.name for entry in (self.state / "models").iterdir() if entry.is_dir()]

    def wait_ready(self, limit: float = WATCHDOG) -> None:
        """Until every model serves; /readyz asks for less once a server has begun."""
        wait_until(lambda: self.inference.get("/readyz").status_code == 200, "the server is ready", self.tail, limit)
        self.wait_serving(limit)

    def wait_serving(self, limit: float = WATCHDOG) -> None:
        """The same where something of the start is missing, so that the server is not ready."""
        wait_until(lambda: all(map(_serves, self.all_versions())), "every model serves", self.tail, limit)

    def all_versions(self) -> list[dict[str, Any]]:
        names = [model["modelName"] for model in self.management.get("/models").json()["models"]]
        return [version for name in names for version in self.versions(name)]

    def kill_worker(self, pid: int, model: str) -> None:
        """SIGKILL; returns when another one serves."""
        os.kill(pid, signal.SIGKILL)

        wait_until(lambda: replaced(self.describe(model), pid), "a new worker serves", self.tail)

    def tail(self) -> str:
        return self.log.read_text()[-6000:]

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WATCHDOG)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WATCHDOG)

    def close(self) -> None:
        for client in (self.inference, self.management, self.metrics):
            client.close()


def replaced(version: dict[str, Any], pid: int) -> bool:
    """Whether all its workers serve, none of them by this process. For a moment a worker is READY without a process: it
    has ended, and what it had written is still being read."""
    workers = version["workers"]
    serving = [worker["pid"] for worker in workers if worker["status"] == "READY" and "pid" in worker]
    return version["state"] == "READY" and pid not in serving and len(serving) == len(workers)


def _serves(version: dict[str, Any]) -> bool:
    states = [worker["status"] for worker in version["workers"]]
    return version["state"] in ("READY", "DEGRADED") and ("READY" in states or not states)


def client_of(address: str, key: str | None = None, certificate: str | None = None) -> httpx.Client:
    """`certificate` (PEM) is the only one that it trusts. An address `unix:/path` is a socket file."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    verify = ssl.create_default_context(cadata=certificate) if certificate else _usual_trust()
    if address.startswith("unix:"):
        transport = httpx.HTTPTransport(uds=address.removeprefix("unix:"))
        return httpx.Client(base_url="http://localhost", headers=headers, timeout=WATCHDOG, transport=transport)
    return httpx.Client(base_url=address, headers=headers, timeout=WATCHDOG, verify=verify, limits=NO_SURPLUS)


@cache
def _usual_trust() -> ssl.SSLContext:
    """One for all clients: each of its own reads all certificates of this machine."""
    return ssl.create_default_context()


def wait_until(
    condition: Callable[[], Any], what: str, explain: Callable[[], str] = lambda: "", limit: float = WATCHDOG
) -> Any:
    """Look again and again, less often as time goes by, and fail when it takes longer than the watchdog allows."""
    deadline = (begun := time.monotonic()) + limit
    while (now := time.monotonic()) < deadline:
        if result := condition():
            return result
        time.sleep(min(max(0.01, (now - begun) / 8), 0.1))
    raise AssertionError(f"waited {limit:g} s in vain until {what}\n{explain()}")


def new_store(folder: Path) -> Path:
    store = folder / "store"
    store.mkdir(exist_ok=True)
    return store


@contextmanager
def run_server(
    folder: Path,
    *flags: str,
    properties: str = "",
    tokens: bool = False,
    model_api: bool = True,
    env: dict[str, str] | None = None,
    ready: bool = True,
    descriptors: int | None = None,
    fork: bool = True,
) -> Iterator[RunningServer]:
    """Start `msx-serve --foreground` on the archives in `folder/store`; asserts at the end that nothing is left."""
    server = start_server(
        folder,
        *flags,
        properties=properties,
        tokens=tokens,
        model_api=model_api,
        env=env,
        descriptors=descriptors,
        fork=fork,
    )
    try:
        if ready:
            server.wait_ready()
        yield server
    finally:
        left = children_of(server.process.pid, recursive=True)
        server.close()
        if server.process.poll() is None:
            server.terminate()
        try:
            assert_nothing_left(server, left)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{server.tail()}") from None


def start_server(
    folder: Path,
    *flags: str,
    properties: str = "",
    tokens: bool = False,
    model_api: bool = True,
    env: dict[str, str] | None = None,
    descriptors: int | None = None,
    fork: bool = True,
) -> RunningServer:
    """`descriptors` is the hard limit of the server and its workers. Without `fork` they are processes of which /proc
    shows the environment, as a user's are. Its process is the frontend, unless `properties` say `supervisor=true`."""
    store = new_store(folder)
    config = folder / "config.properties"
    config.write_text(FREE_PORTS + ("" if "supervisor=" in properties else "supervisor=false\n") + properties)
    arguments = ["--foreground", "--model-store", str(store), "--ts-config", str(config), *flags]
    arguments += [] if tokens else ["--disable-token-auth"]
    arguments += ["--enable-model-api"] if model_api else []
    log = folder / "server.log"
    environment = server_environment(folder, env)
    for info_file in _info_files(folder, flags, environment):
        info_file.unlink(missing_ok=True)
    with log.open("a") as output:
        process = _start(arguments, folder, environment, output, descriptors, fork)
    atexit.register(process.kill)  # for tests that fail before they end it; does nothing to one that has been reaped

    def started() -> Any:
        assert process.poll() is None, f"the server ended with {process.returncode}\n{log.read_text()[-6000:]}"
        return next((path for path in _info_files(folder, flags, environment) if path.exists()), None)

    info_file = wait_until(started, "the server answers", log.read_text)
    return RunningServer(process, json.loads(info_file.read_text()), folder, log)


def _start(
    arguments: list[str], folder: Path, env: dict[str, str], log: IO[str], descriptors: int | None, fork: bool
) -> subprocess.Popen[Any]:
    command = [sys.executable, "-m", "msx_frontend.cli.main", *arguments]
    command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command] if descriptors else command
    kind = ForkingPopen if fork else subprocess.Popen
    return kind(command, cwd=folder, stdout=log, stderr=log, text=True, env=env)


def _info_files(folder: Path, flags: tuple[str, ...], env: dict[str, str]) -> list[Path]:
    """Where a server tells of itself: with `--state-dir`, with `--ncs`, else beside its models."""
    if "--state-dir" in flags:
        return [Path(flags[flags.index("--state-dir") + 1]) / "server.json"]
    if "--ncs" in flags:
        return list(Path(env["XDG_CACHE_HOME"]).glob("msx-serve/stores/*/server.json"))
    return [folder / "store" / ".msx" / "server.json"]


def server_environment(folder: Path, more: dict[str, str] | None = None) -> dict[str, str]:
    """Temp files, caches and the list of running servers lie in the test's own folder, apart from other servers'. The
    machine's GPUs are hidden."""
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    own = {"XDG_STATE_HOME": str(folder / "index"), "XDG_CACHE_HOME": str(folder / "cache")}
    return {**os.environ, "TMPDIR": str(temp), "CUDA_VISIBLE_DEVICES": "", **own, **(more or {})}


def assert_nothing_left(server: RunningServer, processes: list[psutil.Process]) -> None:
    """No process, port, socket or folder of this server."""
    wait_until(lambda: not alive(processes), f"the processes {processes} have ended")
    listeners = ("inference", "management", "metrics", "grpc_inference", "grpc_management")
    addresses = {name: server.info[name] for name in listeners if server.info[name]}
    ports = {}
    for name, address in addresses.items():
        if address.startswith("unix:"):
            assert not os.path.exists(address.removeprefix("unix:")), f"the socket file of {name} is left"
        else:
            ports[int(address.rpartition(":")[2])] = name
    assert not (open_still := _listening(ports, server)), f"{open_still} still listen"
    state, killed = server.state, (server.process.returncode or 0) < 0
    assert not (state / "run").exists(), "working directories are left"
    assert not (state / "server.json").exists() or killed, "server.json is left"
    assert not list((state / "models").glob(".tmp-*")), "a half-unpacked archive is left"
    temp = server.folder / "temp"
    assert not set(os.listdir(temp)) - ({PID_FILE} if killed else set()), f"temp files are left: {os.listdir(temp)}"


def children(pid: int) -> list[psutil.Process]:
    """Processes that a server has started, without the one from which a forked server forks them."""
    return [one for one in children_of(pid) if name_of(one) not in ("", FORKS.decode())]


def _listening(ports: dict[int, str], server: RunningServer) -> list[str]:
    """Names of the ports that the server still has: tests run side by side, and another may have got one."""
    if not any(map(_is_taken, ports)):
        return []
    listeners: list[tuple[str, int | None]] = []

    def known() -> bool:
        """A socket that is opened while psutil looks has no process yet."""
        sockets = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        listeners[:] = [(ports[one.laddr.port], one.pid) for one in sockets if one.laddr and one.laddr.port in ports]
        return all(pid is not None for _, pid in listeners)

    wait_until(known, f"it is known whose ports {list(ports)} are")
    return [name for name, pid in listeners if pid is not None and _belongs(pid, server)]


def _is_taken(port: int) -> bool:
    """Quick, while to find out whose it is takes a look at all descriptors of this machine."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        socket.create_server(("", port), family=family, dualstack_ipv6=both).close()
    except OSError:
        return True
    return False


def _belongs(pid: int, server: RunningServer) -> bool:
    """The server itself, or what it has started, by the folder of temporary files, which each server has for itself."""
    return pid == server.process.pid or environment_of(pid).get("TMPDIR") == str(server.folder / "temp")


FREE_PORTS = """
inference_address=http://127.0.0.1:0
management_address=http://127.0.0.1:0
metrics_address=http://127.0.0.1:0
grpc_inference_port=0
grpc_management_port=0
"""
