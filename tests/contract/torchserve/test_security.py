"""Limits of a URL, an archive and the environment; what is refused leaves nothing behind.

contract#security
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.config.load import load_server_config
from tests.contract.torchserve.setup import Setup, register
from tests.contract.torchserve.shapes import assert_error
from tests.e2e.server import RunningServer
from tests.file_server import FileServer, file_server
from tests.torch_archiver import torch_archive

pytestmark = pytest.mark.e2e

SERVER = Setup(
    properties="blacklist_env_vars=.*PASSWORD.*\n",
    env={"NO_PROXY": "*", "DB_PASSWORD": "secret", "DB_HOST": "here"},
)
ECHO = "import os\ndef handle(data, context):\n    return [' '.join(sorted(os.environ))] * len(data)\n"
MANIFEST = json.dumps({"model": {"modelName": "m", "handler": "h.py"}}).encode()


@pytest.fixture(scope="module")
def web() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_stays(server: RunningServer, nothing_registered: None) -> Iterator[None]:
    before = sorted(os.listdir(server.store))
    yield
    assert server.management.get("/models").json()["models"] == []
    assert sorted(set(os.listdir(server.store)) - set(before)) == []
    assert server.unpacked() == []


# URLs.


def test_every_url_is_allowed_by_default() -> None:
    """As TorchServe's, and models of hubs; registering is off by default, and needs the management key."""
    patterns = [pattern.pattern for pattern in ServerConfig().allowed_urls]
    assert patterns == ["file://.*", "http(s)?://.*", "(hf|modelscope|s3|obs)://.*"]
    assert not ServerConfig().enable_model_api
    assert not ServerConfig().disable_token_authorization
    assert ServerConfig().management_address.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        ("enable_envvars_config=true\nuse_env_allowed_urls=true\n", ["https://env/.*"]),
        ("enable_envvars_config=true\n", ["https://file/.*"]),
        ("use_env_allowed_urls=true\n", ["https://file/.*"]),
    ],
)
def test_ts_allowed_urls_counts_only_when_the_file_says_so(tmp_path: Path, lines: str, allowed: list[str]) -> None:
    file = tmp_path / "config.properties"
    file.write_text(f"model_store={tmp_path}\nallowed_urls=https://file/.*\n{lines}")
    config, _ = load_server_config({}, file, {"TS_ALLOWED_URLS": "https://env/.*"})
    assert [pattern.pattern for pattern in config.allowed_urls] == allowed


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/m.mar", "http://[fe80::1]/m.mar"])
def test_metadata_services_are_never_asked(server: RunningServer, url: str) -> None:
    """Ours: no client gets a cloud's credentials through this server (CVE-2023-43654)."""
    message = f"Given URL {url} does not match any allowed URL(s)"
    assert_error(register(server, url), 404, "ModelNotFoundException", message, exact=False)


def test_a_file_of_the_machine_is_not_shown(server: RunningServer) -> None:
    """file:///etc/passwd is fetched, found to be no archive, and gone again."""
    reply = register(server, "file:///etc/passwd")
    assert_error(reply, 400, "InvalidModelException", f"{server.store}/passwd is not a model archive: ", exact=False)
    assert "root:" not in reply.text


@pytest.mark.parametrize("name", [".msx", "%2e%2e", "%2E%2E%2Fm.mar"])
def test_names_of_downloads_stay_in_the_store(server: RunningServer, web: FileServer, name: str) -> None:
    web.put(f"/{name}", b"no archive")
    reply = register(server, f"{web.url}/{name}")
    assert reply.status_code in (400, 404)
    assert (server.store / ".msx").is_dir()


def test_passwords_and_signatures_are_not_told(server: RunningServer, web: FileServer) -> None:
    """In the body they are in no log either."""
    url = web.url.replace("://", "://me:hunter2@") + "/absent.mar?X-Amz-Signature=hunter3"
    reply = server.management.post("/models", json={"url": url})
    shown = web.url.replace("://", "://***@") + "/absent.mar"
    message = f"Failed to download archive from: {shown} (HTTP 404 Not Found)"
    assert_error(reply, 400, "DownloadArchiveException", message)
    assert "hunter" not in server.log.read_text()


# Archives.


def hostile_zip(path: Path, name: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", MANIFEST)
        archive.writestr("h.py", ECHO)
        archive.writestr(name, "x")


def hostile_tgz(path: Path, member: tarfile.TarInfo, data: bytes = b"x") -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"m/MAR-INF/MANIFEST.json": MANIFEST, "m/h.py": ECHO.encode()}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if member.isreg():
            member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


def refused(server: RunningServer, path: Path, name: str) -> None:
    reply = register(server, path.name)
    path.unlink()
    assert_error(reply, 400, "InvalidModelException", f"{path} is refused: its member '{name}' ", exact=False)
    assert not list(server.folder.rglob("slipped*"))


@pytest.mark.parametrize("name", ["../slipped", "a/../../slipped", "/tmp/slipped", "sub/../../m-sibling/slipped"])
def test_zip_slip(server: RunningServer, name: str) -> None:
    """TorchServe compares prefixes, which a sibling of the same beginning passes; here no name leads out."""
    path = server.store / "hostile.mar"
    hostile_zip(path, name)
    refused(server, path, name)


@pytest.mark.parametrize("name", ["m/../../slipped", "../slipped", "/tmp/slipped"])
def test_zip_slip_of_a_tgz(server: RunningServer, name: str) -> None:
    path = server.store / "hostile.tar.gz"
    hostile_tgz(path, tarfile.TarInfo(name))
    refused(server, path, name)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_what_is_not_a_file_in_a_tgz(server: RunningServer, kind: bytes) -> None:
    """TorchServe writes links as plain files; here they must lead to files of the archive."""
    member = tarfile.TarInfo("m/slipped")
    member.type, member.linkname = kind, "/etc/passwd"
    path = server.store / "hostile.tar.gz"
    hostile_tgz(path, member)
    refused(server, path, "m/slipped")


def test_a_link_in_a_zip(server: RunningServer) -> None:
    path = server.store / "hostile.mar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", MANIFEST)
        info = zipfile.ZipInfo("slipped")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    refused(server, path, "slipped")


# The environment.


def test_blacklist_env_vars(server: RunningServer) -> None:
    """Workers inherit everything but what the regular expression matches."""
    path = torch_archive(server.store, "env", {"h.py": ECHO})
    assert register(server, path.name).status_code == 200
    found = server.predict("env").text.split()
    assert "DB_HOST" in found
    assert "DB_PASSWORD" not in found
    server.management.delete("/models/env")
    path.unlink()
