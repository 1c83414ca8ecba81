"""Passwords and signatures in the URLs of registrations: in no log, no answer, and no file that others may read."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from tests.e2e.server import RunningServer, pack_service, run_server, server_environment
from tests.file_server import FileServer, file_server
from tests.wars import CHAIN, MODELS, pack_war

PASSWORD, SIGNATURE = "pa55-of-bob", "signed-by-bob"
SECRETS = (PASSWORD, SIGNATURE)
READ = [
    "/models",
    "/models/one",
    "/models/two",
    "/workflows",
    "/workflows/w",
    "/models/lost",
    "/openapi.json",
    "/metrics",
]
READ += ["/console/api/traces", "/v2/repository/index", "/console/api/lines?model=one&version=1.0"]


def _url(web: FileServer, path: str) -> str:
    return f"{web.url}{path}?X-Amz-Signature={SIGNATURE}".replace("//", f"//bob:{PASSWORD}@")


def test_a_registrations_secrets_are_shown_nowhere_and_a_restart_has_them(tmp_path: Path) -> None:
    archive = pack_service("echo", tmp_path)
    with file_server() as web:
        for name in ("/one.mar", "/two.mar", "/m1.mar"):
            web.put(name, archive.read_bytes())
        war = pack_war(
            tmp_path, "w", MODELS.replace("m2.mar", "m1.mar").replace("m1.mar", _url(web, "/m1.mar")) + CHAIN
        )
        web.put("/w.war", war.read_bytes())
        with run_server(tmp_path, env={"NO_PROXY": "*"}) as server:
            seen = "".join(_registered(server, web))
            seen += "".join(server.management.get(path).text for path in READ) + _status(server)
        for secret in SECRETS:
            assert secret not in seen
        assert _readable_with_secrets(tmp_path) == []
        (tmp_path / "store" / "one.mar").unlink()
        asked = len(web.asked)
        with run_server(tmp_path, env={"NO_PROXY": "*"}) as server:
            assert server.predict("one", b"hello").content == b"hello"
        path, headers = web.asked[asked]
        assert path == f"/one.mar?X-Amz-Signature={SIGNATURE}"
        assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == f"bob:{PASSWORD}"


def _registered(server: RunningServer, web: FileServer) -> list[str]:
    def post(path: str, **values: object) -> str:
        return server.management.post(f"{path}?{urlencode(values)}").text

    one, two = _url(web, "/one.mar"), _url(web, "/two.mar")
    return [
        post("/models", url=one, model_name="one", initial_workers=1),
        server.management.post("/models", json={"url": two, "model_name": "two"}).text,
        server.management.post(f"/models?url={two}&X-Amz-Credential={SIGNATURE}").text,
        post("/models", url=_url(web, "/absent.mar")),
        post("/models", url=two.replace("http:", "gs:")),
        post("/models", url=f"hf://bob:{PASSWORD}@org/name?token={SIGNATURE}"),
        post("/models", url=f"http://bob:{PASSWORD}@[host/m.mar?{SIGNATURE}"),
        post("/workflows", url=_url(web, "/w.war")),
        post("/v2/repository/models/x/load", url=two),
        post("/nowhere", url=two),
    ]


def _status(server: RunningServer) -> str:
    """Registrations by the command, whose source is not the management API."""
    command = [sys.executable, "-m", "msx_frontend.cli.main", "status", "--json"]
    environment = server_environment(server.folder)
    return subprocess.run(command, cwd=server.folder, env=environment, capture_output=True, text=True).stdout


def _readable_with_secrets(folder: Path) -> list[Path]:
    """Files of the server with one of the secrets in them, but for those of its user alone. What is unpacked is the
    archive's own, as is the file from which the test packs it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("w.yaml", "w.war")]
    found = [path for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)]
    assert any(path.name == "state.db" for path in found)
    assert any(path.suffix == ".cfg" for path in found)
    return [path for path in found if path.stat().st_mode & 0o077]
