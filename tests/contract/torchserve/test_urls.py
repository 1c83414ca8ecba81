"""The forms of `url`, and of `--models`.

contract#urls-of-models
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.contract.torchserve.setup import Setup, register, serving
from tests.contract.torchserve.shapes import assert_error, assert_status
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.file_server import FileServer, file_server
from tests.torch_archiver import FORMATS, torch_archive

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("nothing_registered", "store_as_before")]

ALLOWED = r"allowed_urls=http://127\\.0\\.0\\.1.*,file:///.*/allowed/.*" + "\n"
KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "cn-north-1"}
NO_PROXY = {"NO_PROXY": "*"}

SERVER = Setup(services=("echo",), properties=ALLOWED + "max_download_size=100000\n", env={**KEYS, **NO_PROXY})


@pytest.fixture(scope="module")
def web() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


@pytest.fixture(scope="module")
def elsewhere(server: RunningServer) -> Path:
    """A folder outside of the model store, which allowed_urls allows."""
    (folder := server.folder / "allowed").mkdir()
    return folder


@pytest.fixture
def store_as_before(server: RunningServer, nothing_registered: None) -> Iterator[None]:
    """Downloads are removed with their model (its workers end first)."""
    before = sorted(os.listdir(server.store))
    yield
    for model in server.management.get("/models").json()["models"]:
        server.management.delete(f"/models/{model['modelName']}")
    assert sorted(os.listdir(server.store)) == before
    downloads = server.store / ".msx" / "downloads"
    assert not downloads.exists() or list(downloads.iterdir()) == []


def put(web: FileServer, folder: Path, name: str, archive_format: str = "default") -> str:
    path = torch_archive(folder, name, {"h.py": ECHO}, archive_format=archive_format)
    return web.put(f"/models/{path.name}", path.read_bytes())


ECHO = "def handle(data, context):\n    return [row['body'] for row in data]\n"
DOWNLOAD_FAILED = "DownloadArchiveException"
NOT_FOUND = "ModelNotFoundException"


# What is in the model store.


@pytest.mark.parametrize("url", ["echo.mar", "sub/echo.mar", "/elsewhere/echo.mar"])
def test_only_the_file_name_counts(server: RunningServer, url: str) -> None:
    assert_status(register(server, url), 200, 'Model "echo" Version: 1.0 registered with 1 initial workers')
    assert server.describe("echo")["modelUrl"] == "echo.mar"
    assert server.predict("echo", b"x").content == b"x"


def test_no_url(server: RunningServer) -> None:
    assert_error(server.management.post("/models"), 400, "BadRequestException", "Parameter url is required.")
    assert_error(register(server, ""), 404, NOT_FOUND, "empty url")


@pytest.mark.parametrize("url", ["../echo.mar", "a/../echo.mar", "http://127.0.0.1/../echo.mar", "file:///../x.mar"])
def test_no_way_up(server: RunningServer, url: str) -> None:
    assert_error(register(server, url), 404, NOT_FOUND, f"Relative path is not allowed in url: {url}")


@pytest.mark.parametrize("url", ["absent.mar", "gs://bucket/m.mar", "ftp://host/m.mar", "absent", "/nowhere/absent"])
def test_what_is_not_in_the_store(server: RunningServer, url: str) -> None:
    """Unknown schemes are names that the store does not have."""
    reply = register(server, url)
    assert_error(reply, 404, NOT_FOUND, f"Model not found at: {url}", exact=False)
    assert str(server.store) in reply.json()["message"]


# What is elsewhere.


@pytest.mark.parametrize("archive_format", FORMATS[:3])
def test_http(server: RunningServer, web: FileServer, tmp_path: Path, archive_format: str) -> None:
    """Copied into the model store under its file name, and deleted again at unregister."""
    url = put(web, tmp_path, "remote", archive_format)
    file = server.store / url.rpartition("/")[2]
    assert_status(register(server, url), 200, 'Model "remote" Version: 1.0 registered with 1 initial workers')
    assert server.describe("remote")["modelUrl"] == url
    assert server.management.get("/models").json()["models"] == [{"modelName": "remote", "modelUrl": url}]
    assert file.is_file()
    assert server.predict("remote", b"x").content == b"x"
    assert server.management.delete("/models/remote").status_code == 200
    assert not file.exists()


def test_file(server: RunningServer, elsewhere: Path) -> None:
    path = torch_archive(elsewhere, "there", {"h.py": ECHO})
    assert register(server, f"file://{path}").status_code == 200
    assert (server.store / "there.mar").is_file()
    assert server.describe("there")["modelUrl"] == f"file://{path}"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_elsewhere(server: RunningServer, elsewhere: Path, scheme: str) -> None:
    """An absolute path of a folder is used where it is; here only if allowed_urls allows it as file://."""
    path = torch_archive(elsewhere, "folder", {"h.py": ECHO}, archive_format="no-archive")
    assert register(server, f"{scheme}{path}").status_code == 200
    assert server.describe("folder")["modelUrl"] == str(path)
    assert server.predict("folder", b"x").content == b"x"
    server.management.delete("/models/folder")
    assert path.is_dir()


@pytest.mark.parametrize("url", ["https://127.0.0.1/m.mar", "http://localhost/m.mar", "file:///etc/passwd"])
def test_allowed_urls(server: RunningServer, url: str) -> None:
    assert_error(register(server, url), 404, NOT_FOUND, f"Given URL {url} does not match any allowed URL(s)")


def test_a_folder_that_is_not_allowed(server: RunningServer, tmp_path: Path) -> None:
    path = torch_archive(tmp_path, "folder", {"h.py": ECHO}, archive_format="no-archive")
    message = f"Given URL file://{path} does not match any allowed URL(s)"
    assert_error(register(server, str(path)), 404, NOT_FOUND, message)


def test_a_redirect_that_is_not_allowed(server: RunningServer, web: FileServer) -> None:
    url = web.redirect("/away.mar", "http://localhost/m.mar")
    message = "Given URL http://localhost/m.mar does not match any allowed URL(s)"
    assert_error(register(server, url), 404, NOT_FOUND, message)


def test_downloads_that_fail(server: RunningServer, web: FileServer, elsewhere: Path) -> None:
    big = bytes(200_000)
    (elsewhere / "big.mar").write_bytes(big)
    urls = [f"{web.url}/absent.mar", web.truncate("/short.mar", big[:1000]), web.put("/big.mar", big)]
    urls += [web.endless("/endless.mar"), f"file://{elsewhere}/absent.mar", f"file://{elsewhere}/big.mar", web.url]
    for url in urls:
        message = f"Failed to download archive from: {url}"
        assert_error(register(server, url), 400, DOWNLOAD_FAILED, message, exact=False)


def test_what_is_not_an_archive_does_not_stay(server: RunningServer, web: FileServer) -> None:
    url = web.put("/text.mar", b"no archive")
    reply = register(server, url, model_name="named")
    message = f"{server.store}/text.mar is not a model archive: "
    assert_error(reply, 400, "InvalidModelException", message, exact=False)


def test_workers_that_do_not_start(server: RunningServer, web: FileServer, tmp_path: Path) -> None:
    path = torch_archive(tmp_path, "broken", {"h.py": "1/0\n"})
    reply = register(server, web.put("/broken.mar", path.read_bytes()))
    message = "Failed to start workers for model broken version: 1.0"
    assert_error(reply, 500, "InternalServerException", message, exact=False)


def test_the_name_is_in_the_store_already(server: RunningServer, web: FileServer, tmp_path: Path) -> None:
    """TorchServe says 500; it is a conflict, which no client retries."""
    url = web.put("/other/echo.mar", b"")
    assert_error(register(server, url), 409, "ConflictStatusException", "Model file already exists echo.mar")
    url = put(web, tmp_path, "twice")
    assert register(server, url).status_code == 200
    assert_error(register(server, url), 409, "ConflictStatusException", "Model file already exists twice.mar")
    assert server.predict("twice", b"x").content == b"x"


def test_replacing_by_the_same_url(server: RunningServer, web: FileServer, tmp_path: Path) -> None:
    """Ours: a version that takes the place of the one from the same URL; a bad one leaves the old one as it was."""
    url = put(web, tmp_path, "replaced")
    assert register(server, url).status_code == 200
    file = server.store / "replaced.mar"
    before = file.read_bytes()
    web.put("/models/replaced.mar", b"bad")
    assert register(server, url, replace="true").status_code == 400
    assert file.read_bytes() == before
    assert server.predict("replaced", b"x").content == b"x"
    path = torch_archive(tmp_path, "replaced", {"h.py": ECHO.replace("row['body']", "b'new'")})
    web.put("/models/replaced.mar", path.read_bytes())
    assert register(server, url, replace="true").status_code == 200
    assert server.predict("replaced", b"x").content == b"new"
    wait_until(lambda: len(server.unpacked()) == 1, "the old content is gone", server.tail)
    assert file.is_file()


def test_s3_sse_kms(server: RunningServer, web: FileServer, tmp_path: Path) -> None:
    """The request is signed by the AWS keys of the server's environment."""
    url = put(web, tmp_path, "signed")
    assert register(server, url, s3_sse_kms="true").status_code == 200
    headers = web.asked[-1][1]
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/cn-north-1/s3/aws4_request," in headers["authorization"]
    assert "x-amz-content-sha256" in headers


def test_the_server_serves_while_it_downloads(server: RunningServer, web: FileServer) -> None:
    released = threading.Event()
    assert register(server, "echo.mar").status_code == 200
    with ThreadPoolExecutor(1) as pool:
        url = web.hang("/slow.mar", released)
        slow = pool.submit(register, server, url)
        wait_until(lambda: any(path == "/slow.mar" for path, _ in web.asked), "the download has begun")
        assert server.predict("echo", b"x").content == b"x"
        assert_error(register(server, url), 409, "ConflictStatusException", "Model file already exists slow.mar")
        released.set()
        assert slow.result().status_code == 400


# --models, and load_models.


def test_models_by_url_at_the_start(web: FileServer, tmp_path: Path) -> None:
    """`name=url` and `url`; what fails does not stop the server; a restart does not download again."""
    web.put("/a.mar", torch_archive(tmp_path, "a", {"h.py": ECHO}).read_bytes())
    nameless = torch_archive(tmp_path, "b", {"h.py": ECHO}, modelName=None)
    web.put("/sub/b.mar", nameless.read_bytes())
    load = (f"one={web.url}/a.mar?token=x=y", f"{web.url}/sub/b.mar", f"{web.url}/absent.mar")
    setup = Setup(load=load, properties="default_workers_per_model=1\n", env=NO_PROXY, ready=False)
    (folder := tmp_path / "server").mkdir()
    with serving(setup, folder) as first:
        assert [model["modelName"] for model in first.management.get("/models").json()["models"]] == ["b", "one"]
        assert any("absent.mar" in why and "HTTP 404" in why for why in first.info["not_loaded"])
        first.wait_serving()
        assert first.predict("one", b"x").content == b"x"
    asked = len(web.asked)
    with serving(setup, folder) as second:
        second.wait_serving()
        assert [path for path, _ in web.asked[asked:]] == ["/absent.mar"]
        assert second.describe("one")["modelUrl"] == f"{web.url}/a.mar", "without the query, which may be a signature"
        assert second.management.delete("/models/one").status_code == 200
        assert sorted(path.name for path in second.store.glob("*.mar")) == ["b.mar"]


def test_load_models_of_the_configuration(web: FileServer, tmp_path: Path) -> None:
    """And a downloaded file that was removed is downloaded again."""
    (folder := tmp_path / "server").mkdir()
    url = web.put("/c.mar", torch_archive(tmp_path, "c", {"h.py": ECHO}).read_bytes())
    properties = f"default_workers_per_model=1\nload_models=c1={url},echo.mar\n"
    setup = Setup(services=("echo",), properties=properties, env=NO_PROXY)
    with serving(setup, folder) as server:
        assert server.predict("c1", b"x").content == b"x"
        assert server.predict("echo", b"x").content == b"x"
    (folder / "store" / "c.mar").unlink()
    with serving(Setup(env=NO_PROXY, properties="default_workers_per_model=1\n"), folder) as server:
        assert server.predict("c1", b"x").content == b"x"
        assert (folder / "store" / "c.mar").is_file()


def test_a_file_beside_the_store(tmp_path: Path) -> None:
    (folder := tmp_path / "server").mkdir()
    path = pack_service("echo", tmp_path)
    with serving(Setup(load=(f"here={path}",), properties="default_workers_per_model=1\n"), folder) as server:
        assert server.predict("here", b"x").content == b"x"
