"""The three start functions, with a server that is not there: what it is asked, and what they make of its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving import server
from msx_mindspore_serving.packages.mindspore_serving.server import script_server, starting
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import ServerError

BEGIN = "Raise failed: Serving Error: "


class NoServer:
    """Stands for the script's server and its process."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer: ServerError | None = None
        self.signalled = self.has_servables = False
        self.listening: set[str] = set()
        self.stopped = 0
        self.stopping = False

    @property
    def running(self) -> NoServer | None:
        return self if self.asked else None

    def started(self) -> NoServer:
        return self

    def ask(self, what: str, **arguments: Any) -> None:
        self.asked.append((what, arguments))
        if self.answer is not None:
            raise self.answer

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> NoServer:
    fake = NoServer()
    monkeypatch.setattr(starting, "SERVER", fake)
    return fake


@pytest.fixture
def files(tmp_path: Path) -> Any:
    for name in ("cert.pem", "key.pem", "ca.pem"):
        (tmp_path / name).touch()
    return server.SSLConfig(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"), str(tmp_path / "ca.pem"), True)


def refused(fake: NoServer, call: Any, *arguments: Any, **options: Any) -> str:
    """The text; the server is stopped before it is raised."""
    before = fake.stopped
    with pytest.raises(RuntimeError) as raised:
        call(*arguments, **options)
    assert fake.stopped == before + 1
    return str(raised.value)


@pytest.mark.parametrize("start", [server.start_grpc_server, server.start_restful_server])
def test_arguments(fake: NoServer, start: Any) -> None:
    what = "type" if start is server.start_grpc_server else "class"
    for arguments, text in (
        ((5500,), "Parameter 'address' should be str, but actually <class 'int'>"),
        (("",), "Parameter 'address' should not be empty str"),
        (("h:1", 0), "Parameter 'max_msg_mb_size' should be in range [1,512]"),
        (("h:1", 513), "Parameter 'max_msg_mb_size' should be in range [1,512]"),
        (("h:1", True), "Parameter 'max_msg_mb_size' should be int, but actually <class 'bool'>"),
        (("h:1", 1, "ssl"), f"The type of ssl_config should be {what} of SSLConfig"),
        (("nothing", 0), "Parameter 'max_msg_mb_size' should be in range [1,512]"),
    ):
        assert refused(fake, start, *arguments) == text
    assert not fake.asked


def test_what_the_server_is_asked(fake: NoServer, files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server.start_grpc_server("127.0.0.1:5500", ssl_config=files)
    server.start_restful_server("0.0.0.0:1500", max_msg_mb_size=512)
    tls = {"certificate": files.certificate, "private_key": files.private_key, "custom_ca": files.custom_ca}
    assert fake.asked == [
        ("open", {"api": "grpc", "address": "127.0.0.1:5500", "limit": 100 << 20, "tls": tls}),
        ("open", {"api": "rest", "address": "0.0.0.0:1500", "limit": 512 << 20, "tls": None}),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "Serving: Serving gRPC server start success, listening on 127.0.0.1:5500",
        "Serving: Serving RESTful server start success, listening on 0.0.0.0:1500",
    ]
    running = "server is already running"
    assert refused(fake, server.start_grpc_server, "bad") == f"{BEGIN}Serving gRPC {running}"
    assert refused(fake, server.start_restful_server, "bad") == f"{BEGIN}RESTful {running}"


def test_relative_sockets_are_where_the_script_runs(
    fake: NoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.start_grpc_server("unix:serving.sock")
    assert fake.asked[0][1]["address"] == f"unix:{tmp_path}/serving.sock"


def test_endpoints_that_the_server_cannot_open(fake: NoServer, files: Any) -> None:
    fake.answer = ServerError("bind", "in use")
    grpc_failed = "Serving gRPC server start failed, create server failed, address h:1"
    assert refused(fake, server.start_grpc_server, "h:1") == BEGIN + grpc_failed
    rest_failed = "RESTful server start failed, bind to the socket address h:1 failed"
    assert refused(fake, server.start_restful_server, "h:1") == BEGIN + rest_failed
    for kind, text in (
        ("certificate", f"load certificate_chain from {files.certificate} failed"),
        ("private_key", f"load private_key from {files.private_key} failed"),
        ("custom_ca", f"load root certificate from {files.custom_ca} failed"),
    ):
        fake.answer = ServerError(kind, "unreadable")
        assert refused(fake, server.start_restful_server, "h:1", ssl_config=files) == BEGIN + text
        assert refused(fake, server.start_grpc_server, "h:1", ssl_config=files) == BEGIN + grpc_failed


def test_a_missing_certificate_of_grpc_is_an_error_of_python(fake: NoServer, tmp_path: Path) -> None:
    gone = server.SSLConfig(str(tmp_path / "gone.pem"), str(tmp_path / "key.pem"))
    with pytest.raises(FileNotFoundError):
        server.start_grpc_server("h:1", ssl_config=gone)
    assert fake.stopped == 1


@pytest.fixture
def add(tmp_path: Path) -> Any:
    (tmp_path / "add").mkdir()
    (tmp_path / "add" / "servable_config.py").touch()
    return server.ServableStartConfig(str(tmp_path), "add", device_ids=1, dec_key=b"k" * 16)


def test_servables(fake: NoServer, add: Any, tmp_path: Path) -> None:
    server.start_servables([add], enable_lite=True)
    [(what, asked)] = fake.asked
    assert (what, asked["lite"]) == ("load", True)
    assert asked["servables"] == [
        {
            "directory": str(tmp_path),
            "name": "add",
            "version": 0,
            "device_ids": (1,),
            "device_type": "none",
            "num_parallel_workers": 0,
            "dec_key": "a2tra2tra2tra2tra2traw==",
            "dec_mode": "AES-GCM",
        }
    ]
    assert refused(fake, server.start_servables, add) == f"{BEGIN}Master gRPC server is already running"


def test_workers_that_do_not_start(fake: NoServer, add: Any) -> None:
    why = "import add.servable_config failed, no"
    for more, text in (
        ({"name": "add", "device": 1}, f"{{servable name:add, device id:1, <{why}>}}"),
        ({"name": "add", "version": 0, "extra": 2}, f"{{servable:add, version:0, extra:2, <{why}>}}"),
    ):
        fake.answer, fake.has_servables = ServerError("worker", why, more), False
        assert refused(fake, server.start_servables, add) == f"Fail to start workers: {text}"
    fake.answer, fake.has_servables = ServerError("gone", "it has ended"), False
    assert refused(fake, server.start_servables, add) == "Start worker failed: it has ended"
    fake.signalled, fake.has_servables = True, False
    signalled = "Fail to start workers because of signal SIGINT or SIGTERM"
    assert refused(fake, server.start_servables, add) == signalled


def test_what_is_wrong_with_servables_is_told_and_stops_all(
    fake: NoServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(fake, server.start_servables, server.ServableStartConfig(str(tmp_path), "gone"))
    assert text.startswith("Check servable config failed, directory ")
    assert capsys.readouterr().out == f"Serving: Start servables failed: {text}\n"


def test_the_limit_of_requests(fake: NoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are started later are told, and one that runs at once."""
    own = script_server.ScriptServer()
    monkeypatch.setattr(server.master.context, "SERVER", own)
    for wrong, text in (
        (0, "Parameter 'max_enqueued_requests' should be >= 1"),
        (True, "Parameter 'max_enqueued_requests' should be int, but actually <class 'bool'>"),
    ):
        with pytest.raises(RuntimeError) as raised:
            server.master.context.set_max_enqueued_requests(wrong)
        assert str(raised.value) == text
    server.master.context.set_max_enqueued_requests(7)
    monkeypatch.setattr(script_server, "ServerProcess", lambda ended: fake)
    monkeypatch.setattr(own, "_take_signals", lambda: None)
    monkeypatch.setattr(own, "_register", lambda: None)
    own.started()
    assert own.running is not None
    server.master.context.set_max_enqueued_requests(9)
    assert fake.asked == [("limit", {"enqueued": 7}), ("limit", {"enqueued": 9})]
