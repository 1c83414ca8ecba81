"""Start scripts of MindSpore Serving run unchanged, against MSX."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import grpc
import httpx
import pytest

from tests.certificates import Certificate, write_pem
from tests.e2e.scripts import BEGIN, READY, run_script
from tests.e2e.server import server_environment, wait_until
from tests.free_ports import free_port
from tests.processes import children_of, is_alive

pytestmark = pytest.mark.e2e

BYTES = bytes, bytes
"""Serializers of messages that are bytes."""
MSX_SERVE = [sys.executable, "-m", "msx_frontend.cli.main", "--script"]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_endpoints_are_opened_closed_and_opened_again(tmp_path: Path) -> None:
    """By `stop`, all in one script; without servables, so that it is quick."""
    grpc_port, rest_port = free_port(), free_port()
    script = BEGIN + (
        "grpc, rest = (f'127.0.0.1:{port}' for port in sys.argv[1:])\n"
        "for round in range(2):\n"
        "    server.start_grpc_server(grpc)\n"
        "    server.start_restful_server(rest)\n"
        "    print('OPEN', round, flush=True)\n"
        "    sys.stdin.readline() if round == 2 else None\n"
        "    server.stop()\n"
        "    server.stop()\n"
        "    print('CLOSED', round, flush=True)\n"
        "for start, address in ((server.start_restful_server, grpc), (server.start_grpc_server, 'unix:a.sock')):\n"
        "    start(address)\n" + READY
    )
    with run_script(tmp_path, script, str(grpc_port), str(rest_port)) as running:
        running.wait_ready()
        assert listens(grpc_port), running.everything()
        assert not listens(rest_port)
        assert (tmp_path / "a.sock").is_socket()
        for number in range(2):
            assert f"CLOSED {number}" in running.out
        assert f"Serving: Serving RESTful server start success, listening on 127.0.0.1:{grpc_port}" in running.out
        with grpc.insecure_channel(f"unix:{tmp_path}/a.sock") as channel:
            with pytest.raises(grpc.RpcError) as raised:
                channel.unary_unary("/grpc.health.v1.Health/Check", *BYTES)(b"", timeout=60)
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert httpx.get(f"http://127.0.0.1:{grpc_port}/ping").json().get("status") is None
        assert running.end() == 0
        assert "Serving: Serving server begin to exit: receive exit signal" in running.err
    assert not listens(grpc_port)


def test_a_start_that_fails_stops_all(tmp_path: Path) -> None:
    first, taken = free_port(), socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    address = f"127.0.0.1:{taken.getsockname()[1]}"
    script = BEGIN + (
        "grpc, rest = server.start_grpc_server, server.start_restful_server\n"
        "for start, other, *addresses in ((grpc, rest, sys.argv[2], 'a:b:5500'), (rest, grpc, sys.argv[2])):\n"
        "    for address in addresses:\n"
        "        other(sys.argv[1])\n"
        "        try:\n"
        "            start(address)\n"
        "        except RuntimeError as error:\n"
        "            print(error)\n" + READY
    )
    with taken, run_script(tmp_path, script, f"127.0.0.1:{first}", address) as running:
        assert running.process.wait(60) == 0, running.everything()
        assert not listens(first)
        said = running.out.splitlines()
        error = "Raise failed: Serving Error: "
        for bad in (address, "a:b:5500"):
            assert f"{error}Serving gRPC server start failed, create server failed, address {bad}" in said
        assert f"{error}RESTful server start failed, bind to the socket address {address} failed" in said


def test_certificates(tmp_path: Path) -> None:
    own, client, stranger = Certificate.make(), Certificate.make(), Certificate.make()
    _, certificate = write_pem(own, tmp_path)
    for name, one in (("client", client), ("stranger", stranger)):
        (tmp_path / name).mkdir()
        write_pem(one, tmp_path / name)
    (tmp_path / "bad.pem").write_text("no certificate")
    ports = [free_port() for _ in range(4)]
    script = BEGIN + (
        "ssl = lambda key='key.pem', ca='client/certificate.pem', verify=True, certificate='certificate.pem': "
        "server.SSLConfig(certificate, key, ca, verify)\n"
        "grpc, rest = server.start_grpc_server, server.start_restful_server\n"
        "for start, *wrongs in ((grpc, 'ca=bad.pem', 'key=gone.pem'), "
        "(rest, 'certificate=bad.pem', 'key=client/key.pem', 'ca=bad.pem')):\n"
        "    for wrong in wrongs:\n"
        "        try:\n"
        "            start(sys.argv[1], ssl_config=ssl(**dict([wrong.split('=')])))\n"
        "        except (RuntimeError, OSError) as error:\n"
        "            print(type(error).__name__, error)\n"
        "server.start_grpc_server(sys.argv[1], ssl_config=ssl(verify=False))\n"
        "server.start_restful_server(sys.argv[2], ssl_config=ssl())\n" + READY
    )
    trusted = {"SSL_CERT_FILE": str(tmp_path / "stranger" / "certificate.pem")}  # by the system, which does not count
    with run_script(tmp_path, script, *(f"127.0.0.1:{port}" for port in ports), env=trusted) as running:
        running.wait_ready()
        error, grpc_address = "RuntimeError Raise failed: Serving Error:", f"127.0.0.1:{ports[0]}"
        created = f"{error} Serving gRPC server start failed, create server failed, address {grpc_address}"
        said = [line for line in running.out.splitlines() if "Error" in line]
        assert said == [
            created,
            "FileNotFoundError [Errno 2] No such file or directory: 'gone.pem'",
            f"{error} load certificate_chain from bad.pem failed",
            f"{error} load private_key from client/key.pem failed",
            f"{error} load root certificate from bad.pem failed",
        ]
        credentials = grpc.ssl_channel_credentials(own.pem)
        with grpc.secure_channel(f"localhost:{ports[0]}", credentials) as channel:
            with pytest.raises(grpc.RpcError) as raised:
                channel.unary_unary("/no.Service/Call", *BYTES)(b"", timeout=60)
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
        url = f"https://localhost:{ports[1]}/"
        with httpx.Client(verify=trusting(certificate, tmp_path / "client")) as known:
            known.get(url)
        for folder in (None, tmp_path / "stranger"):
            with httpx.Client(verify=trusting(certificate, folder)) as other, pytest.raises(httpx.HTTPError):
                other.get(url)
        with httpx.Client() as plain, pytest.raises(httpx.HTTPError):
            plain.get(url.replace("https", "http"))


def trusting(certificate: Path, own: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificate))
    if own is not None:
        context.load_cert_chain(own / "certificate.pem", own / "key.pem")
    return context


ENDPOINT = BEGIN + "server.start_restful_server(sys.argv[1])\n" + READY


def test_a_script_that_was_stopped_ends(tmp_path: Path) -> None:
    """As by Ctrl-Z and `kill %1` of a shell, which sends SIGTERM and then SIGCONT."""
    for _ in range(5):  # which thread would take the signal is chance
        with run_script(tmp_path, ENDPOINT, f"127.0.0.1:{free_port()}") as running:
            running.wait_ready()
            running.process.send_signal(signal.SIGSTOP)
            running.process.send_signal(signal.SIGTERM)
            assert running.end(signal.SIGCONT) == 0, running.everything()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals(tmp_path: Path, how: signal.Signals) -> None:
    """At its end the script only waits for its server; before, it ends as it would without one."""
    (tmp_path / "click.py").write_text("raise RuntimeError('a file of the user')")
    with run_script(tmp_path, ENDPOINT, f"127.0.0.1:{free_port()}") as running:
        running.wait_ready()
        assert running.end(how) == 0, running.everything()
        assert "Traceback" not in running.err
    with run_script(tmp_path, ENDPOINT + "import time\ntime.sleep(600)\n", f"127.0.0.1:{free_port()}") as running:
        running.wait_ready()
        assert running.end(how) == (0 if how is signal.SIGTERM else -signal.SIGINT), running.everything()


def test_the_server_ends_with_its_script_and_the_script_with_its_server(tmp_path: Path) -> None:
    port = free_port()
    forks = "import os, time\nif os.fork() == 0:\n    print('CHILD', os.getpid(), flush=True)\n    time.sleep(600)\n"
    with run_script(tmp_path, ENDPOINT + forks, f"127.0.0.1:{port}") as running:
        running.wait_for("CHILD")
        [server, child] = sorted(children_of(running.process.pid), key=lambda one: one.create_time())
        assert running.end(signal.SIGKILL) == -signal.SIGKILL
        wait_until(lambda: not is_alive(server), "it has ended")
        assert not listens(port)
        assert is_alive(child), "a child of the script has no part in its server"
        child.terminate()
        wait_until(lambda: not is_alive(child), "a signal ends it")
    with run_script(tmp_path, ENDPOINT, f"127.0.0.1:{port}") as running:
        running.wait_ready()
        running.server().kill()
        running.server_killed = True
        assert running.process.wait(60) == 1, running.everything()
        assert "the server process has ended unexpectedly, see serving_logs/msx.log" in running.err


def test_msx_serve_runs_the_script(tmp_path: Path) -> None:
    """With its own arguments, flags for the server, and `--status`."""
    (tmp_path / "own.properties").write_text("inference_address=http://127.0.0.1:0\nno_such_key=1\n")
    command = [*MSX_SERVE[:-1], "--ts-config", "own.properties", "--script"]
    address = f"127.0.0.1:{free_port()}"
    with run_script(tmp_path, ENDPOINT + "print(sys.argv)\n", address, "--port", "5", command=command) as running:
        running.wait_ready()
        assert "no_such_key" in running.log
        status, upgrade = (
            subprocess.run(
                [*MSX_SERVE[:-1], word],
                cwd=tmp_path,
                env=server_environment(tmp_path),
                capture_output=True,
                text=True,
                check=False,
            )
            for word in ("--status", "upgrade")
        )
        assert status.returncode == 0, status
        script = tmp_path / "serving_server.py"
        refusal = f"this server belongs to its start script, {script}, and ends with it: run that anew."
        assert (upgrade.returncode, upgrade.stderr) == (1, f"Not upgraded: {refusal}\n")
        assert f"serving_server.py\n  endpoints   rest {address}, http://127.0.0.1:" in status.stdout
        assert f"['serving_server.py', '{address}', '--port', '5']" in running.out
        (tmp_path / "key_file.json").unlink()  # of the listener that its configuration names
    refused = subprocess.run([*MSX_SERVE, "gone.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (1, "--script file not found: gone.py\n")


def test_a_script_that_cannot_have_a_server(tmp_path: Path) -> None:
    (tmp_path / "config.properties").write_text("inference_address=nonsense\n")
    caught = BEGIN + "try:\n    server.start_restful_server(sys.argv[1])\nexcept RuntimeError:\n    pass\n"
    with run_script(tmp_path, caught, "127.0.0.1:5500") as running:
        assert running.process.wait(60) == 0, "it knows, and goes on"
    with run_script(tmp_path, ENDPOINT, "127.0.0.1:5500") as running:
        assert running.process.wait(60) == 1
        assert "inference_address: 'nonsense' is not an address like" in running.err.splitlines()[-1]
        assert os.listdir(tmp_path / "temp") == []
