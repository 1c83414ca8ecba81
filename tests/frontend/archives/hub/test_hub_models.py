"""The models of hubs in the model store: fetched once, kept, named by their commit, within the rules of the server."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from msx_archiver.cli import main
from msx_core.service_errors import ServiceError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.hubs import Hubs
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed, InvalidModel
from tests.archiver.test_signatures import write_keys
from tests.frontend.archives.hub.test_sources import environment
from tests.frontend.packing import pack_model
from tests.hub_server import HubServer, Repository, hub_server
from tests.loops import run
from tests.s3_server import s3_server

pytestmark = pytest.mark.usefixtures("forked_processes")

COMMIT, NEWER = "a" * 40, "b" * 40
HANDLER = {"handler.py": b"def handle(data, context): return data", "weights.bin": b"1" * 20_000}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        server.repositories["org/echo"] = Repository(dict(HANDLER))
        yield server


class Store:
    """A model store as of a server that was just started."""

    def __init__(
        self,
        path: Path,
        hub: HubServer,
        env: dict[str, str] | None = None,
        ring: Path | None = None,
        **settings: object,
    ) -> None:
        (path / "store").mkdir(exist_ok=True)
        config = msgspec.structs.replace(ServerConfig(), hub_dir=path / "hub", **settings)
        state = StateFolder(path / "state", (path / "store").resolve(), is_named=True)
        hubs = Hubs(config, state, environment(path, HF_ENDPOINT=hub.url, **(env or {})))
        ring = (ring or path / "ring") if config.require_signature else None
        self.store = ModelStore(state.model_store, state, Downloads(config, state.downloads), ring, hubs)
        self.served: list[ArchiveUrl] = []
        self.store.used_by(lambda: self.served)

    async def serve(self, url: str, *, reuse: bool = False) -> tuple[Path, str]:
        async with self.store.obtained(ArchiveUrl.parse(url), reuse=reuse, name="echo") as found:
            await self.store.contents.unpack(found.path)
            self.served.append(ArchiveUrl.parse(found.url))
        return found.path, found.url

    async def end(self, url: str) -> None:
        self.served.remove(ArchiveUrl.parse(url))
        await self.store.forget(ArchiveUrl.parse(url), self.served)


def refused(store: Store, url: str, kind: type[ServiceError] = DownloadFailed) -> str:
    with pytest.raises(kind) as caught:
        run(store.serve(url))
    return caught.value.message


def test_served_as_a_local_folder_is(hub: HubServer, tmp_path: Path) -> None:
    store = Store(tmp_path, hub)
    path, url = run(store.serve("hf://org/echo"))
    assert url == f"hf://org/echo@{COMMIT}"
    assert (path / "handler.py").read_bytes() == HANDLER["handler.py"]
    assert b'"modelName": "echo"' in (path / "MAR-INF" / "MANIFEST.json").read_bytes()


def test_a_commit_is_fetched_once(hub: HubServer, tmp_path: Path) -> None:
    path, url = run(Store(tmp_path, hub).serve("hf://org/echo"))
    hub.asked.clear()
    assert run(Store(tmp_path, hub).serve(url)) == (path, url)
    assert run(Store(tmp_path, hub).serve("hf://org/echo", reuse=True)) == (path, url)
    assert hub.asked == []


def test_a_branch_is_asked_for_again(hub: HubServer, tmp_path: Path) -> None:
    store = Store(tmp_path, hub)
    old, _ = run(store.serve("hf://org/echo"))
    hub.repositories["org/echo"] = Repository({**HANDLER, "handler.py": b"new"}, commit=NEWER)
    new, url = run(store.serve("hf://org/echo"))
    assert url == f"hf://org/echo@{NEWER}"
    assert [(path / "handler.py").read_bytes() for path in (old, new)] == [HANDLER["handler.py"], b"new"]


def test_a_hub_without_commits_names_the_content(hub: HubServer, tmp_path: Path) -> None:
    def start() -> Store:
        return Store(tmp_path, hub, {"MODELSCOPE_DOMAIN": hub.url})

    old, old_url = run(start().serve("modelscope://org/echo@master"))
    assert re.fullmatch("modelscope://org/echo@master#sha256=[0-9a-f]{64}", old_url)
    hub.repositories["org/echo"].files["handler.py"] = b"new"
    new, new_url = run(start().serve("modelscope://org/echo@master"))
    assert new != old
    hub.asked.clear()
    assert run(start().serve(old_url)) == (old, old_url)
    assert run(start().serve(new_url, reuse=True)) == (new, new_url)
    assert hub.asked == []
    assert run(Store(tmp_path, hub, require_signature=True).serve(old_url))[1] == old_url


def test_two_at_once_fetch_it_once(hub: HubServer, tmp_path: Path) -> None:
    async def both() -> list[tuple[Path, str]]:
        store = Store(tmp_path, hub)
        return list(await asyncio.gather(*(store.serve("hf://org/echo") for _ in range(2))))

    one, two = run(both())
    assert one == two
    assert len(hub.reads("weights.bin")) == 1


def test_bytes_are_seen_while_they_come(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories["org/echo"].files["weights.bin"] = os.urandom(4 << 20)
    hub.gate.clear()

    async def watched() -> str:
        store = Store(tmp_path, hub)
        task = asyncio.create_task(store.serve("hf://org/echo"))
        while not (found := store.store.fetches.find("echo")) or "MiB of" not in found.phase:
            await asyncio.sleep(0.01)
        phase = found.phase
        hub.gate.set()
        await task
        assert store.store.fetches.find("echo") is None
        return phase

    assert re.fullmatch(r"fetching hf://org/echo: \d\.\d MiB of 4\.0 MiB", run(watched()))


@pytest.mark.parametrize(("setting", "env"), [("hub_offline", {}), ("HF_HUB_OFFLINE", {"HF_HUB_OFFLINE": "1"})])
def test_offline(setting: str, env: dict[str, str], hub: HubServer, tmp_path: Path) -> None:
    path, url = run(Store(tmp_path, hub).serve("hf://org/echo"))
    hub.asked.clear()
    store = Store(tmp_path, hub, env, hub_offline=not env)
    assert run(store.serve("hf://org/echo")) == (path, url)
    said = refused(store, "hf://org/other")
    assert f"and {setting} forbids to ask the hub" in said
    assert hub.asked == []


def test_offline_from_the_cache_of_the_library(hub: HubServer, tmp_path: Path) -> None:
    env = environment(tmp_path, HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "hf"))
    fetch = "import huggingface_hub; huggingface_hub.snapshot_download('org/echo')"
    subprocess.run([sys.executable, "-c", fetch], env=env, check=True, capture_output=True)
    hub.asked.clear()
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    path, url = run(Store(tmp_path, hub, offline).serve("hf://org/echo"))
    assert url == f"hf://org/echo@{COMMIT}"
    assert (path / "handler.py").read_bytes() == HANDLER["handler.py"]
    assert "Hugging Face's cache on this machine does not have it" in refused(
        Store(tmp_path, hub, offline), "hf://org/other"
    )
    blob = next((tmp_path / "hf").rglob("weights.bin")).resolve()
    blob.write_bytes(b"2" * 20_000)
    shutil.rmtree(tmp_path / "hub")
    assert "weights.bin is damaged" in refused(Store(tmp_path, hub, offline), "hf://org/echo")
    assert hub.asked == []


def test_require_signature_takes_commits_alone(hub: HubServer, tmp_path: Path) -> None:
    store = Store(tmp_path, hub, require_signature=True)
    for url in ("hf://org/echo", "hf://org/echo@main", "modelscope://org/echo"):
        assert "register " + url.partition("@")[0] + "@<commit>" in refused(store, url)
    assert "a folder of a bucket cannot be signed" in refused(store, "s3://bucket/folder")
    assert hub.asked == []
    path, _ = run(store.serve(f"hf://org/echo@{COMMIT}"))
    assert path.is_dir()


def test_a_signed_archive_of_a_bucket(hub: HubServer, tmp_path: Path) -> None:
    private, public = write_keys(tmp_path / "keys")
    archive = pack_model(tmp_path)
    assert CliRunner().invoke(main, ["sign", str(archive), "--key", str(private)]).exit_code == 0
    with s3_server() as bucket:
        bucket.client.create_bucket(Bucket="models")
        bucket.client.upload_file(str(archive), "models", "net/echo.mar")
        store = Store(tmp_path, hub, bucket.env, require_signature=True, ring=public)
        assert "is not signed" in refused(store, "s3://models/net/echo.mar", InvalidModel)
        (tmp_path / "store" / "echo.mar.sig").write_bytes(archive.with_name(f"{archive.name}.sig").read_bytes())
        path, url = run(store.serve("s3://models/net/echo.mar"))
    assert path.read_bytes() == archive.read_bytes()
    assert re.fullmatch("s3://models/net/echo.mar#sha256=[0-9a-f]{64}", url)
    assert run(store.serve(url)) == (path, url)


def test_an_unpacked_archive_in_a_hub_is_served_in_place(hub: HubServer, tmp_path: Path) -> None:
    manifest = b'{"model": {"modelName": "m", "handler": "handler.py"}}'
    hub.repositories["org/echo"].files["MAR-INF/MANIFEST.json"] = manifest
    path, _ = run(Store(tmp_path, hub, require_signature=True).serve(f"hf://org/echo@{COMMIT}"))
    assert path.is_relative_to(tmp_path / "hub")


def test_allowed_urls(hub: HubServer, tmp_path: Path) -> None:
    store = Store(tmp_path, hub, allowed_urls=(re.compile("hf://trusted/.*"),))
    said = refused(store, "hf://org/echo", ArchiveNotFound)
    assert said == "Given URL hf://org/echo does not match any allowed URL(s)"
    assert hub.asked == []


def test_what_is_not_the_url_of_a_model(hub: HubServer, tmp_path: Path) -> None:
    assert "is not a URL of the form hf://org/name" in refused(Store(tmp_path, hub), "hf://a/b/c", ArchiveNotFound)


def test_what_cannot_be_served_says_why(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories["org/echo"] = Repository({"config.json": b"[]", "model.safetensors": b"x"})
    assert "is not a JSON object" in refused(Store(tmp_path, hub), "hf://org/echo", InvalidModel)


def test_what_nobody_uses_goes_when_the_cache_is_full(hub: HubServer, tmp_path: Path) -> None:
    store = Store(tmp_path, hub, hub_cache_size=25_000)

    def cached() -> int:
        return len(list((tmp_path / "hub").glob("*/*/listing.json")))

    hub.repositories["org/other"] = Repository({**HANDLER, "more.bin": b"2"})
    path, url = run(store.serve("hf://org/echo"))
    other, other_url = run(store.serve("hf://org/other"))
    assert cached() == 2
    run(store.end(url))
    assert (cached(), path.exists(), other.exists()) == (2, False, True)
    run(store.end(other_url))
    assert cached() == 1
    hub.asked.clear()
    run(store.serve("hf://org/other", reuse=True))
    assert hub.asked == []


def test_a_content_that_another_server_uses_stays(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    one, two = (Store(tmp_path, hub, hub_cache_size=0) for _ in range(2))
    _, url = run(one.serve("hf://org/echo"))
    run(two.serve(url))
    run(one.end(url))
    assert len(list((tmp_path / "hub").glob("*/*/listing.json"))) == 1
    run(two.end(url))
    assert not list((tmp_path / "hub").glob("*/*/listing.json"))


def test_a_start_removes_folders_that_are_not_used(hub: HubServer, tmp_path: Path) -> None:
    path, url = run(Store(tmp_path, hub).serve("hf://org/echo"))
    store = Store(tmp_path, hub)
    run(store.serve(url))
    run(store.store.clean())
    assert path.exists()
    run(Store(tmp_path, hub).store.clean())
    assert not path.exists()
