"""`msx-serve` as it is typed: start, stop, status, and what it says when something is wrong."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.certificates import Certificate, write_pem
from tests.disks import fill, small_disk
from tests.e2e.server import FREE_PORTS, new_store, pack_service, server_environment, wait_until
from tests.forked import run_forked
from tests.free_ports import free_port
from tests.processes import is_alive

pytestmark = pytest.mark.e2e

HEAVY = ("mindspore", "numpy", "starlette", "uvicorn", "uvloop", "grpc", "prometheus_client", "asyncio")


@dataclass
class Said:
    code: int
    out: str
    err: str

    def place(self, name: str) -> str:
        """Text behind a heading of `--start`."""
        found = re.search(rf"^  {name} +(\S+)", self.out, re.MULTILINE)
        assert found, self.out
        return found[1]

    @property
    def pid(self) -> int:
        found = re.search(r"\(pid (\d+)\)", self.out)
        assert found, self.out
        return int(found[1])


@dataclass
class Terminal:
    """A terminal in which `msx-serve` is typed; servers that are left running are killed at the end."""

    folder: Path
    pids: list[int] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    run: Callable[..., subprocess.CompletedProcess[str]] = run_forked

    def serve(self, *arguments: str, cwd: Path | None = None, before: Callable[[], None] | None = None) -> Said:
        command = [sys.executable, "-m", "msx_frontend.cli.main", *arguments]
        env = {**server_environment(self.folder), **self.env}
        options: dict[str, Any] = {"cwd": cwd or self.folder, "env": env, "preexec_fn": before}
        done = self.run(command, **options)
        said = Said(done.returncode, done.stdout, done.stderr)
        if "started (pid" in said.out:
            self.pids.append(said.pid)
        return said

    def close(self) -> None:
        for pid in self.pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """In a folder with an archive and a config.properties with free ports."""
    pack_service("echo", tmp_path)
    (tmp_path / "config.properties").write_text(FREE_PORTS)
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def another_folder(terminal: Terminal, name: str) -> Path:
    folder = terminal.folder / name
    folder.mkdir()
    (folder / "config.properties").write_text(FREE_PORTS)
    pack_service("echo", folder)
    return folder


def refused(said: Said) -> str:
    """One sentence on stderr, exit code 1, no traceback."""
    assert (said.code, said.out) == (1, ""), said
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) == 1, said.err
    return said.err.strip()


# -- start, status, stop --


def test_start_status_stop(terminal: Terminal) -> None:
    """By processes as a user has them; the others are forked."""
    terminal.run = functools.partial(subprocess.run, capture_output=True, text=True, timeout=60, check=False)
    started = terminal.serve("--start", "--models", "echo.mar")
    assert started.code == 0, started
    key_file = Path(started.place("tokens"))
    assert key_file == terminal.folder / "key_file.json"
    key = json.loads(key_file.read_text())["inference"]["key"]
    url = started.place("inference") + "/predictions/echo"
    answer = httpx.post(url, content=b"hello", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.text) == (200, "hello")
    assert started.place("log") == str(terminal.folder / ".msx" / "logs" / "msx.log")
    assert Path(started.place("log")).read_text()
    assert key not in Path(started.place("log")).read_text()

    status = terminal.serve("--status")
    assert status.code == 0
    assert f"running (pid {started.pid})" in status.out
    assert re.search(r"model +version +state +worker +pid +status +devices +memory", status.out)
    assert re.search(r"echo +1\.0 +READY +9000 +\d+ +READY +cpu +\d+ MB", status.out)

    stopped = terminal.serve("--stop")
    assert (stopped.code, stopped.out) == (0, "MSX has stopped.\n")
    assert not is_alive(started.pid)
    assert not key_file.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(started.place("inference"))


def test_stop_and_status_from_elsewhere(terminal: Terminal) -> None:
    terminal.serve("--start", "--models", "echo.mar", "--dt")
    elsewhere = terminal.folder / "elsewhere"
    elsewhere.mkdir()
    assert "echo" in terminal.serve("--status", cwd=elsewhere).out
    named = terminal.serve("--status", "--model-store", str(elsewhere))
    assert "not currently running" in refused(named)
    assert terminal.serve("--stop", cwd=elsewhere).code == 0


def test_two_servers(terminal: Terminal) -> None:
    """On stores and ports of their own they do not meet; `--stop` wants to know which."""
    one, two = another_folder(terminal, "one"), another_folder(terminal, "two")
    first = terminal.serve("--start", "--models", "echo.mar", "--dt", cwd=one)
    second = terminal.serve("--start", "--models", "a=echo.mar", "--dt", cwd=two)
    assert (first.code, second.code) == (0, 0)
    for said, model in ((first, "echo"), (second, "a")):
        assert httpx.post(f"{said.place('inference')}/predictions/{model}", content=b"x").text == "x"
    status = terminal.serve("--status").out
    assert (str(first.pid) in status, str(second.pid) in status) == (True, True)
    which = refused(terminal.serve("--stop"))
    assert "--model-store" in which
    assert (str(one) in which, str(two) in which) == (True, True)
    assert terminal.serve("--stop", "--model-store", str(two)).code == 0
    assert is_alive(first.pid)
    assert terminal.serve("--stop").code == 0


def test_what_a_killed_server_left_does_not_stop_the_next(terminal: Terminal) -> None:
    first = terminal.serve("--start", "--models", "echo.mar")
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(first.pid), "it is gone")
    left = [terminal.folder / "key_file.json", terminal.folder / ".msx" / "server.json"]
    assert all(path.exists() for path in left)
    assert terminal.serve("--status").code == 1
    assert terminal.serve("--stop").out == "MSX is not currently running.\n"
    second = terminal.serve("--start")
    assert second.code == 0
    assert "echo" in terminal.serve("--status").out
    assert terminal.serve("--stop").code == 0


def test_status_shows_devices(terminal: Terminal) -> None:
    (terminal.folder / "config.properties").write_text(FREE_PORTS + "simulate_devices=2\n")
    terminal.serve("--start", "--models", "echo.mar", "--dt")
    rows = re.findall(r"echo +1\.0 +\S+ +\d+ +\d+ +\S+ +(\d)", terminal.serve("--status").out)
    assert rows == ["0", "1"]
    assert terminal.serve("--stop").code == 0


def test_status_of_models_that_failed(terminal: Terminal) -> None:
    pack_service("raises_in_init", terminal.folder, config="maxRetryTimeoutInSec: 0\nminWorkers: 1\nmaxWorkers: 1\n")
    assert terminal.serve("--start", "--models", "raises_in_init.mar", "--dt").code == 0
    wait_until(lambda: "FAILED" in terminal.serve("--status").out, "the model is given up")
    status = terminal.serve("--status")
    assert (status.code, "weights.ckpt is not in the archive" in status.out) == (1, True)
    assert terminal.serve("--stop").code == 0


def test_status_needs_no_key_and_no_listener(terminal: Terminal, tmp_path: Path) -> None:
    """Keys have expired; one listener for all, with TLS, by a certificate that no one else trusts."""
    key, certificate = write_pem(Certificate.make(), tmp_path)
    address = f"https://127.0.0.1:{free_port()}"
    addresses = f"inference_address={address}\nmanagement_address={address}\n"
    tls = f"private_key_file={key}\ncertificate_file={certificate}\n"
    grpc = "grpc_inference_port=0\ngrpc_management_port=0\nenable_metrics_api=false\n"
    (terminal.folder / "config.properties").write_text(f"{addresses}{tls}{grpc}token_expiration_min=0.00001\n")
    started = terminal.serve("--start", "--models", "echo.mar", "--wait")
    assert started.code == 0, started
    assert (terminal.folder / ".msx" / "status.sock").stat().st_mode & 0o777 == 0o600
    os.unlink(started.place("tokens"))
    status = terminal.serve("--status")
    assert (status.code, bool(re.search(r"echo +1\.0 +READY", status.out))) == (0, True), status
    _, certificate = write_pem(Certificate.make(), tmp_path)
    wait_until(lambda: trusts(address, certificate), "new connections get the new certificate")
    assert terminal.serve("--stop").code == 0
    assert not (terminal.folder / ".msx" / "status.sock").exists()


def trusts(address: str, certificate: Path) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{address}/livez", verify=ssl.create_default_context(cafile=certificate)).status_code == 200
    return False


def test_a_start_that_waits_for_its_models(terminal: Terminal) -> None:
    """0 when all are ready; 1 with the error at the first that is not, and the server goes on."""
    ready = terminal.serve("--start", "--wait", "--models", "echo.mar", "--dt")
    assert (ready.code, ready.err) == (0, ""), ready
    assert httpx.get(ready.place("inference") + "/readyz").status_code == 200
    assert terminal.serve("--stop").code == 0
    pack_service("raises_in_init", terminal.folder)
    failed = terminal.serve("--start", "--wait", "--ncs", "--models", "echo.mar", "raises_in_init.mar", "--dt")
    assert failed.code == 1
    assert "Model raises_in_init 1.0 is not ready: The model could not be loaded: " in failed.err
    assert "weights.ckpt is not in the archive" in failed.err
    assert "msx-serve --stop ends it" in failed.err
    late = terminal.serve("--start", "--wait", "--models", "echo.mar", "--dt")
    assert "already running" in refused(late)
    assert terminal.serve("--stop").code == 0


def test_a_start_waits_no_longer_than_it_is_told(terminal: Terminal) -> None:
    pack_service("never_loads", terminal.folder)
    said = terminal.serve("--start", "--wait", "--wait-timeout", "0", "--models", "never_loads.mar", "--dt")
    assert said.code == 1
    assert "Model never_loads 1.0 is not ready within --wait-timeout: it is LOADING" in said.err
    assert terminal.serve("--stop").code == 0
    assert refused(terminal.serve("--foreground", "--wait")).startswith("--wait is for a server in the background")


def test_models_that_are_not_there_after_the_start_are_named(terminal: Terminal) -> None:
    (terminal.folder / "bad.mar").write_bytes(b"PK nonsense")
    started = terminal.serve("--start", "--models", "echo.mar", "bad.mar", "--dt")
    for said, code in ((started, 0), (terminal.serve("--status"), 1)):
        assert said.code == code, said
        assert re.search(r"^  model bad\.mar could not be loaded: .*bad\.mar is ", said.out, re.MULTILINE), said
    ready = httpx.get(started.place("inference") + "/readyz")
    assert ready.status_code == 503, "a rollout stops here"
    assert "bad.mar" in ready.json()["status"]
    assert terminal.serve("--stop").code == 0


@pytest.mark.parametrize("address", ["http://127.0.0.1:0", "unix:management.sock"])
def test_status_asks_the_server_itself(terminal: Terminal, address: str) -> None:
    """Not a proxy, which may well be set on machines that fetch packages through one."""
    terminal.env["http_proxy"] = "http://127.0.0.1:1"
    address = address.replace("unix:", f"unix:{terminal.folder}/")
    (terminal.folder / "config.properties").write_text(f"{FREE_PORTS}\nmanagement_address={address}\n")
    assert terminal.serve("--start", "--models", "echo.mar").code == 0
    assert re.search(r"echo +1\.0 ", terminal.serve("--status").out)
    assert terminal.serve("--stop").code == 0


def test_the_same_flags_as_torchserve(terminal: Terminal) -> None:
    """Several after one --models, --ncs, --foreground away, --model-store and --ts-config from elsewhere."""
    pack_service("env", terminal.folder)
    elsewhere = terminal.folder / "elsewhere"
    elsewhere.mkdir()
    config = str(terminal.folder / "config.properties")
    flags = ["--start", "--ncs", "--model-store", str(terminal.folder), "--ts-config", config, "--dt"]
    started = terminal.serve(*flags, "--models", "echo.mar", "mine=env.mar", cwd=elsewhere)
    assert started.code == 0, started
    models = httpx.get(started.place("management") + "/models").json()["models"]
    assert [model["modelName"] for model in models] == ["echo", "mine"]
    assert terminal.serve("--stop", "--model-store", str(terminal.folder)).code == 0


def test_all_models_and_paths(terminal: Terminal) -> None:
    store = new_store(terminal.folder)
    pack_service("env", store)
    started = terminal.serve("--start", "--model-store", "store", "--models", "all", "./echo.mar", "--dt")
    models = httpx.get(started.place("management") + "/models").json()["models"]
    assert models == [
        {"modelName": "echo", "modelUrl": str(terminal.folder / "echo.mar")},
        {"modelName": "env", "modelUrl": "env.mar"},
    ]
    assert terminal.serve("--stop", "--model-store", "store").code == 0


# -- what is wrong --


def test_a_model_that_is_not_there(terminal: Terminal) -> None:
    for mode in ("--start", "--foreground"):
        reason = refused(terminal.serve(mode, "--models", "echo.mar", "absent.mar"))
        assert "absent.mar" in reason
        assert str(terminal.folder) in reason
    assert not (terminal.folder / "key_file.json").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ("missing.properties",)),
        ("job_queue_size=many\n", ("job_queue_size", "many")),
        ("inference_address=https://127.0.0.1:8443\n", ("https://", "private_key_file", "keystore")),
        ("load_models=absent.mar\n" + FREE_PORTS, ("absent.mar",)),
    ],
)
def test_a_wrong_configuration(terminal: Terminal, text: str | None, words: tuple[str, ...]) -> None:
    path = terminal.folder / "missing.properties"
    if text is not None:
        path.write_text(text)
    reason = refused(terminal.serve("--start", "--ts-config", str(path)))
    for word in words:
        assert word in reason


def test_an_unknown_flag(terminal: Terminal) -> None:
    said = terminal.serve("--modells", "echo.mar")
    assert said.code == 2
    assert "--models" in said.err


def test_a_port_that_is_taken(terminal: Terminal) -> None:
    keys = ("inference_address", "management_address", "metrics_address", "grpc_inference_port", "grpc_management_port")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for key in keys:
            value = f"http://127.0.0.1:{port}" if key.endswith("address") else port
            config = terminal.folder / "config.properties"
            config.write_text(FREE_PORTS + f"{key}={value}\n")
            reason = refused(terminal.serve("--start", "--dt"))
            assert f"127.0.0.1:{port}" in reason
            assert key in reason
    assert terminal.serve("--status").code == 1


def test_a_key_file_of_another_server(terminal: Terminal) -> None:
    one, two = another_folder(terminal, "one"), another_folder(terminal, "two")
    terminal.serve("--start", "--model-store", str(one))
    reason = refused(terminal.serve("--start", "--model-store", str(two)))
    assert str(terminal.folder / "key_file.json") in reason
    assert "running" in reason
    assert terminal.serve("--stop", "--model-store", str(one)).code == 0


def test_a_model_store_that_cannot_be_written(terminal: Terminal) -> None:
    """Files where folders must be: permissions do not stop root."""
    for number, obstacle in enumerate((".msx", ".msx/logs", ".msx/models", ".msx/state.db/x")):
        store = terminal.folder / f"store{number}"
        (store / obstacle).parent.mkdir(parents=True)
        (store / obstacle).write_text("")
        reason = refused(terminal.serve("--start", "--model-store", store.name))
        assert "cannot" in reason
        assert str(store / obstacle.removesuffix("/x")) in reason or store.name in reason


def test_a_full_model_store(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the size of files stands for the disk."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # its data could not be written, and it would say so
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (0, 0))
    for mode in ("--start", "--foreground"):
        reason = refused(terminal.serve(mode, "--dt", before=limit))
        assert "state.db: the server's state cannot be written" in reason


def test_too_few_descriptors(terminal: Terminal) -> None:
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (32, 32))
    for mode in ("--start", "--foreground"):
        reason = refused(terminal.serve(mode, "--dt", before=limit))
        assert "may have 32 files and connections open, and needs at least 40: raise the hard limit" in reason


def test_a_full_disk_names_the_file_and_what_is_left(terminal: Terminal) -> None:
    """Nothing is left on it that was not whole, and the next start has room again."""
    with small_disk(terminal.folder / "disk", 1 << 20) as disk:
        fill(disk)
        for mode in ("--start", "--foreground"):
            reason = refused(terminal.serve(mode, "--dt", "--model-store", str(disk)))
            assert re.search(r"/disk/\S+: .*\(it needs .*, and its disk has 0 B left\)", reason), reason
        assert not list(disk.rglob("*.tmp"))
        (disk / "filler").unlink()
        assert terminal.serve("--start", "--dt", "--model-store", str(disk)).code == 0
        assert terminal.serve("--stop", "--model-store", str(disk)).code == 0


def test_a_damaged_state(terminal: Terminal) -> None:
    (terminal.folder / ".msx").mkdir()
    (terminal.folder / ".msx" / "state.db").write_bytes(b"no database at all" * 100)
    reason = refused(terminal.serve("--start", "--dt"))
    assert "state.db" in reason
    assert "--ncs" in reason
    assert terminal.serve("--start", "--dt", "--ncs").code == 0
    assert terminal.serve("--stop").code == 0


# -- quick answers --


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(terminal: Terminal, flag: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "msx_frontend.cli.main", flag]
    done = subprocess.run(command, cwd=terminal.folder, capture_output=True, text=True, timeout=60, check=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)
    assert ("--models" if flag == "--help" else "MSX Version is") in done.stdout


# -- logs --


def test_a_log_config(terminal: Terminal) -> None:
    (terminal.folder / "logs.yaml").write_text(
        "version: 1\n"
        "formatters: {plain: {format: 'MINE %(name)s %(message)s'}}\n"
        "handlers: {file: {class: logging.FileHandler, filename: mine.log, formatter: plain}}\n"
        "root: {level: INFO, handlers: [file]}\n"
    )
    started = terminal.serve("--start", "--models", "echo.mar", "--dt", "--log-config", "logs.yaml")
    assert started.code == 0, started
    assert started.place("log") == str(terminal.folder / "mine.log")
    httpx.post(started.place("inference") + "/predictions/echo", content=b"x")
    assert terminal.serve("--stop").code == 0
    lines = (terminal.folder / "mine.log").read_text()
    assert "MINE msx.server Model server started" in lines
    assert re.search(r'MINE msx\.access \S+ "POST /predictions/echo HTTP/1\.1" 200 ', lines)


@pytest.mark.parametrize("text", [None, "", "version: 1\nroot: {handlers: [absent]}\n", "just words"])
def test_a_log_config_that_cannot_be_used(terminal: Terminal, text: str | None) -> None:
    if text is not None:
        (terminal.folder / "logs.yaml").write_text(text)
    for mode in ("--start", "--foreground"):
        reason = refused(terminal.serve(mode, "--log-config", "logs.yaml"))
        assert "logs.yaml" in reason


# -- the console that started it --


@pytest.mark.parametrize("key", ["", "console=true\n"])
def test_the_output_of_a_start_can_be_taken(terminal: Terminal, key: str) -> None:
    """`$(…)` ends when all who could write to it are gone: the server must not be one of them."""
    (terminal.folder / "config.properties").write_text(FREE_PORTS + key)
    script = 'out=$("$0" -m msx_frontend.cli.main --start --dt); echo "returned $?: $out"'
    command = ["sh", "-c", script, sys.executable]
    env = server_environment(terminal.folder)
    done = subprocess.run(command, cwd=terminal.folder, env=env, capture_output=True, text=True, timeout=60, check=True)
    said = Said(0, done.stdout, done.stderr)
    terminal.pids.append(said.pid)
    assert said.out.startswith("returned 0: Model server started"), said
    assert terminal.serve("--stop").code == 0


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-"])
def test_a_start_by_a_caller_that_has_closed_its_streams(terminal: Terminal, closed: str) -> None:
    """Nothing that the command opens takes their numbers, which are those of the server's own streams."""
    (terminal.folder / "config.properties").write_text(FREE_PORTS)
    command = ["sh", "-c", f'exec "$0" -m msx_frontend.cli.main --start --dt {closed}', sys.executable]
    subprocess.run(command, cwd=terminal.folder, env=server_environment(terminal.folder), timeout=60, check=True)
    terminal.pids.append(json.loads((terminal.folder / ".msx" / "server.json").read_text())["pid"])
    assert terminal.serve("--stop").code == 0


def test_a_console_has_the_log_and_never_holds_up_the_server(terminal: Terminal) -> None:
    """A named pipe that is not read: 64 KiB, then what may wait, then lines are dropped and counted."""
    (terminal.folder / "config.properties").write_text(FREE_PORTS + "console=true\n")
    os.mkfifo(terminal.folder / "console")
    console = os.open(terminal.folder / "console", os.O_RDWR | os.O_NONBLOCK)
    command = f"{sys.executable} -m msx_frontend.cli.main --start --models echo.mar --dt > console"
    subprocess.run(
        ["sh", "-c", command], cwd=terminal.folder, env=server_environment(terminal.folder), timeout=60, check=True
    )
    info = json.loads((terminal.folder / ".msx" / "server.json").read_text())
    terminal.pids.append(info["pid"])
    with httpx.Client(base_url=info["inference"]) as client:
        for number in range(300):
            assert client.post(f"/predictions/echo?{number}{'x' * 4000}", content=b"x").text == "x"
    assert terminal.serve("--stop").code == 0
    shown = os.read(console, 1 << 20).decode(errors="replace")
    os.close(console)
    log = (terminal.folder / ".msx" / "logs" / "msx.log").read_text()
    assert shown.partition("\n")[0] in log
    assert '"message": "Model server started: ' in shown
    assert re.search(r"The console was not read: \d+ lines of the log were not copied to it\.", log)


def test_a_backup_where_there_is_no_state(terminal: Terminal) -> None:
    """In a container that has no server yet, or by a mistyped folder."""
    said = refused(terminal.serve("--backup", "b"))
    assert said.startswith(f"{terminal.folder}/.msx/state.db does not exist, so there is nothing to back up: ")
    both = terminal.serve("--stop", "--backup", "b")
    assert (both.code, "--stop and --backup exclude each other: give one of them." in both.err) == (2, True)
