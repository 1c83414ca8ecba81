"""Each hub by its own library, in the process that fetches, against a server that speaks its protocol."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.archives.hub import remote as module
from msx_frontend.archives.hub.fetch_process import NotFetchedError, fetch
from msx_frontend.archives.hub.hub_url import HubUrl
from tests.hub_server import HubServer, Repository, hub_server
from tests.loops import run
from tests.s3_server import S3Server, s3_server

pytestmark = pytest.mark.usefixtures("forked_processes")

WEIGHTS = os.urandom(3 << 20)
FILES = {"config.json": b"{}", "tokenizer.json": b'{"a": 1}', "model.safetensors": WEIGHTS, "flax_model.msgpack": b"x"}
READ = {name: data for name, data in FILES.items() if name != "flax_model.msgpack"}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        server.repositories["org/name"] = Repository(FILES, others={"v1": "b" * 40})
        yield server


def environment(home: Path, **more: str) -> dict[str, str]:
    """Without credentials and settings of whoever runs the tests."""
    left = ("HF_", "MODELSCOPE_", "AWS_", "OBS_", "HUGGING", "MSX_API_KEY")
    env = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    return {**env, "HOME": str(home), "NO_PROXY": "*", "AWS_EC2_METADATA_DISABLED": "true", **more}


def fetched(url: str, root: Path, most: int = 1 << 30, /, **env: str) -> tuple[dict[str, bytes], str]:
    """The files, and the commit."""
    id, revision = run(fetch(url, root, most, 60.0, lambda done, size: None, environment(root, **env), allowed=[".*"]))
    found = HubUrl.parse(url)
    folder = root / found.folder / id / found.name
    return {path.name: path.read_bytes() for path in folder.iterdir()}, revision


def refused(url: str, root: Path, most: int = 1 << 30, /, **env: str) -> str:
    with pytest.raises(NotFetchedError) as caught:
        fetched(url, root, most, **env)
    return str(caught.value)


def of_hub(scheme: str, hub: HubServer) -> dict[str, str]:
    return {{"hf": "HF_ENDPOINT", "modelscope": "MODELSCOPE_DOMAIN"}[scheme]: hub.url}


@pytest.mark.parametrize("scheme", ["hf", "modelscope"])
def test_over_breaks(scheme: str, hub: HubServer, tmp_path: Path) -> None:
    hub.breaks["model.safetensors"] = [1 << 20]
    files, revision = fetched(f"{scheme}://org/name", tmp_path, **of_hub(scheme, hub))
    assert files == READ
    assert revision == ("a" * 40 if scheme == "hf" else "")
    first, second = hub.reads("model.safetensors")
    assert first == "bytes=0-"
    assert 1 << 19 < int(second.removeprefix("bytes=").rstrip("-")) <= 1 << 20


@pytest.mark.parametrize("scheme", ["hf", "modelscope"])
def test_a_server_without_ranges_a_revision_and_a_token(scheme: str, hub: HubServer, tmp_path: Path) -> None:
    hub.repositories["org/name"].token = "hub-secret"
    hub.knows_ranges = False
    hub.breaks["model.safetensors"] = [1 << 20]
    token = {"hf": "HF_TOKEN", "modelscope": "MODELSCOPE_API_TOKEN"}[scheme]
    url = f"{scheme}://org/name@v1"
    assert token in refused(url, tmp_path, **of_hub(scheme, hub)) or scheme == "modelscope"  # whose hub says 404
    files, revision = fetched(url, tmp_path, **of_hub(scheme, hub), **{token: "hub-secret"})
    assert files == READ
    assert revision == ("b" * 40 if scheme == "hf" else "")


@pytest.mark.parametrize("scheme", ["hf", "modelscope"])
def test_refused(scheme: str, hub: HubServer, tmp_path: Path) -> None:
    hub.repositories["org/empty"] = Repository({"README.md": b"x"})
    hub.damaged["config.json"] = b"[]"
    assert "the hub does not have it" in refused(f"{scheme}://org/other", tmp_path, **of_hub(scheme, hub))
    assert "the revision v9" in refused(f"{scheme}://org/name@v9", tmp_path, **of_hub(scheme, hub))
    assert "config.json is damaged" in refused(f"{scheme}://org/name", tmp_path, **of_hub(scheme, hub))
    assert "it cannot be served" in refused(f"{scheme}://org/empty", tmp_path, **of_hub(scheme, hub))
    assert "more than max_download_size" in refused(f"{scheme}://org/name", tmp_path, 1000, **of_hub(scheme, hub))


def test_a_content_that_is_there_no_more(hub: HubServer, tmp_path: Path) -> None:
    said = refused(f"modelscope://org/name#sha256={'0' * 64}", tmp_path, **of_hub("modelscope", hub))
    assert re.fullmatch("it has another content now: #sha256=[0-9a-f]{64}", said)
    assert hub.reads("model.safetensors") == []
    named = f"modelscope://org/name{said.rpartition(' ')[2]}"
    assert fetched(named, tmp_path, **of_hub("modelscope", hub))[0] == READ


def test_a_home_that_is_not_there(hub: HubServer, tmp_path: Path) -> None:
    for scheme in ("hf", "modelscope"):
        assert fetched(f"{scheme}://org/name", tmp_path, HOME="/proc/none", **of_hub(scheme, hub))[0] == READ


def test_passwords_and_queries_of_urls_are_not_told() -> None:
    error = OSError("refused: https://me:secret@cdn/x?X-Amz-Signature=abc&b=c (a reason), url: /x?sig=abc")
    assert module.said(error) == "OSError: refused: https://***@cdn/x (a reason), url: /x?…"


def test_a_token_file_of_the_library(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories["org/name"].token = "hub-secret"
    (tmp_path / ".cache" / "huggingface").mkdir(parents=True)
    (tmp_path / ".cache" / "huggingface" / "token").write_text("hub-secret\n")
    assert fetched("hf://org/name", tmp_path, **of_hub("hf", hub))[0] == READ


def test_a_library_that_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "s3fs.py").write_text("raise ModuleNotFoundError('No module named s3fs', name='s3fs')")
    said = refused("s3://bucket/m", tmp_path, PYTHONPATH=str(tmp_path))
    assert said == "s3:// needs s3fs, which is not installed: pip install 'msx-serve[hub]'"


def test_a_process_that_dies_is_named(tmp_path: Path) -> None:
    (tmp_path / "s3fs.py").write_text("import os; os.write(2, b'out of luck'); os._exit(3)")
    said = refused("s3://bucket/m", tmp_path, PYTHONPATH=str(tmp_path))
    assert said == "the process that fetches it ended with code 3: out of luck"


def test_a_download_that_takes_too_long(hub: HubServer, tmp_path: Path) -> None:
    hub.gate.clear()
    env = environment(tmp_path, **of_hub("hf", hub))
    with pytest.raises(NotFetchedError, match=r"longer than download_timeout, 1 s; what has come stays"):
        run(fetch("hf://org/name", tmp_path, 1 << 30, 1.0, lambda *_: None, env, allowed=[".*"]))


def test_the_process_ends_with_its_server(hub: HubServer, tmp_path: Path) -> None:
    hub.gate.clear()
    command = [sys.executable, "-m", "msx_frontend.archives.hub.process"]
    order = {"url": "hf://org/name", "root": str(tmp_path), "most": 1 << 30, "offline": False, "allowed": [".*"]}
    with subprocess.Popen(
        command, env=environment(tmp_path, **of_hub("hf", hub)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        while b"done" not in process.stdout.readline():
            pass
        process.stdin.close()
        assert process.wait(60) == 1


def test_obs_needs_its_address(tmp_path: Path) -> None:
    assert "OBS_ENDPOINT is not set" in refused("obs://bucket/m", tmp_path)


# -- object stores --

MULTIPART = os.urandom((5 << 20) + 3)


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    """It has models in a bucket."""
    with s3_server() as server:
        _fill(server.client)
        yield server


def _fill(client: Any) -> None:
    client.create_bucket(Bucket="models")
    for name, data in FILES.items():
        client.put_object(Bucket="models", Key=f"text/qwen/{name}", Body=data)
    client.put_object(Bucket="models", Key="text/qwen-other/config.json", Body=b"x")
    client.put_object(Bucket="models", Key="text/qwen/", Body=b"")
    client.put_object(Bucket="models", Key="packed/net.mar", Body=b"archive", ChecksumAlgorithm="SHA256")
    client.put_object(Bucket="models", Key="packed/net.mar.more", Body=b"x")
    client.put_object(Bucket="models", Key="parts/net.mindir", Body=b"")
    upload = client.create_multipart_upload(Bucket="models", Key="parts/net.mindir")["UploadId"]
    parts = []
    for number, data in enumerate((MULTIPART[: 5 << 20], MULTIPART[5 << 20 :]), 1):
        where = {"Bucket": "models", "Key": "parts/net.mindir", "UploadId": upload}
        tag = client.upload_part(**where, PartNumber=number, Body=data)["ETag"]
        parts.append({"PartNumber": number, "ETag": tag})
    client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})


def test_a_folder_of_a_bucket(store: S3Server, tmp_path: Path) -> None:
    assert fetched("s3://models/text/qwen/", tmp_path, **store.env)[0] == READ


def test_an_archive_in_a_bucket(store: S3Server, tmp_path: Path) -> None:
    assert fetched("s3://models/packed/net.mar", tmp_path, **store.env)[0] == {"net.mar": b"archive"}


def test_an_object_of_several_parts(store: S3Server, tmp_path: Path) -> None:
    assert fetched("s3://models/parts", tmp_path, **store.env)[0] == {"net.mindir": MULTIPART}
    listing = next(tmp_path.glob("*/*/listing.json"))
    assert json.loads(listing.read_text())["files"][0][2].endswith("-2")


def test_obs(store: S3Server, tmp_path: Path) -> None:
    keys = {"OBS_ACCESS_KEY_ID": "k", "OBS_SECRET_ACCESS_KEY": "s", "OBS_ENDPOINT": store.endpoint}
    assert fetched("obs://models/text/qwen", tmp_path, **keys)[0] == READ


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://models/none", "it has no files"),
        ("s3://nowhere/x", "there is no bucket nowhere"),
    ],
)
def test_a_store_that_does_not_have_it(url: str, why: str, store: S3Server, tmp_path: Path) -> None:
    assert why in refused(url, tmp_path, **store.env)
