"""Archives from elsewhere: whole and allowed, or not there at all."""

from __future__ import annotations

import ipaddress
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from msx_core.service_errors import ServiceError
from msx_frontend.archives import http_source
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import ArchiveNotFound, Conflict, DownloadFailed
from msx_net.outgoing import addresses
from tests.disks import small_disk
from tests.file_server import FileServer, file_server
from tests.frontend.packing import pack_model
from tests.loops import run

DATA = os.urandom((1 << 20) + 17)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(scope="module")
def web() -> Iterator[FileServer]:
    with file_server() as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def downloads(root: Path, **settings: object) -> Downloads:
    config = msgspec.structs.replace(ServerConfig(), **settings)
    return Downloads(config, root / ".msx" / "downloads")


def fetched(root: Path, url: str, **settings: object) -> bytes:
    run(downloads(root, **settings).fetch(ArchiveUrl.parse(url), root / "m.mar"))
    return (root / "m.mar").read_bytes()


def failed(root: Path, url: str, kind: type[ServiceError] = DownloadFailed, **settings: object) -> str:
    """The message; nothing is left."""
    with pytest.raises(kind) as caught:
        fetched(root, url, **settings)
    assert [path for path in root.rglob("*") if path.is_file()] == []
    return caught.value.message


def test_a_file_comes_as_it_is(root: Path, web: FileServer) -> None:
    assert fetched(root, web.put("/m.mar", DATA)) == DATA
    assert web.asked[-1][1]["accept-encoding"] == "identity"
    assert (root / "m.mar").stat().st_mode & 0o777 == 0o600


def test_how_far_it_is(root: Path, web: FileServer) -> None:
    told: list[tuple[int, int]] = []
    url = ArchiveUrl.parse(web.put("/m.mar", DATA))
    run(downloads(root).fetch(url, root / "m.mar", progress=lambda done, size: told.append((done, size))))
    assert told[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_file_of_this_machine(root: Path) -> None:
    (root.parent / "there.mar").write_bytes(DATA)
    assert fetched(root, f"file://{root.parent}/there.mar") == DATA


def test_redirects(root: Path, web: FileServer) -> None:
    web.put("/m.mar", DATA)
    web.redirect("/two", "/m.mar")
    assert fetched(root, web.redirect("/one", f"{web.url}/two")) == DATA


def test_a_redirect_must_be_allowed(root: Path, web: FileServer) -> None:
    other = web.put("/m.mar", DATA).replace("127.0.0.1", "localhost")
    allowed = (re.compile(r"http://127\.0\.0\.1.*"),)
    message = failed(root, web.redirect("/away", other), ArchiveNotFound, allowed_urls=allowed)
    assert message == f"Given URL {other} does not match any allowed URL(s)"


def test_a_redirect_does_not_leave_the_folder_that_is_allowed(root: Path, web: FileServer) -> None:
    web.put("/bad/m.mar", DATA)
    allowed = (re.compile(f"{web.url}/good/.*"),)
    for number, up in enumerate(("..", "%2e%2e", ".%2E")):
        url = web.redirect(f"/good/{number}.mar", f"{web.url}/good/{up}/bad/m.mar")
        assert "Relative path is not allowed in url" in failed(root, url, ArchiveNotFound, allowed_urls=allowed)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://host/m.mar"])
def test_a_redirect_stays_on_the_web(root: Path, web: FileServer, location: str) -> None:
    url = web.redirect("/away", location)
    assert failed(root, url) == f"Failed to download archive from: {url} (it redirects to {location})"


def test_a_redirect_to_a_metadata_service(root: Path, web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even connected to."""
    monkeypatch.setattr(http_source, "_connected", lambda *_: [])
    url = web.redirect("/away", "http://169.254.169.254/latest/meta-data/m.mar")
    assert "which is never asked" in failed(root, url, ArchiveNotFound)


def test_a_host_that_became_a_metadata_service(root: Path, web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look-up and the connection."""
    monkeypatch.setattr(http_source, "resolved", lambda host: [])
    monkeypatch.setattr(addresses, "_SERVICES", {ipaddress.ip_address("127.0.0.1")})
    assert "which is never asked" in failed(root, web.put("/m.mar", DATA), ArchiveNotFound)


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if `localhost` and 127.0.0.2 were of the Internet."""
    by_name = {"localhost": ["192.0.9.1"], "127.0.0.2": ["192.0.9.2"]}
    found = lambda host: [ipaddress.ip_address(text) for text in by_name.get(host, [host])]  # noqa: E731
    monkeypatch.setattr(http_source, "resolved", found)


def test_a_public_host_does_not_redirect_to_a_private_one(root: Path, web: FileServer, public: None) -> None:
    inside = web.put("/m.mar", DATA)
    outside = web.redirect("/away", inside).replace("127.0.0.1", "localhost")
    asked = len(web.asked)
    said = failed(root, outside, ArchiveNotFound)
    assert said.startswith(f"Given URL {inside} does not match any allowed URL(s): 127.0.0.1 is of this machine or a")
    assert len(web.asked) == asked + 1, "the private host is not asked"
    web.redirect("/there", outside)
    assert "to which a public host may not redirect" in failed(root, f"{web.url}/there", ArchiveNotFound), "nor by both"


def test_a_name_that_has_become_a_private_one(
    root: Path, web: FileServer, public: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look-up and the connection; the address of a proxy is private, and not looked at."""
    port = int(web.url.rpartition(":")[2])
    there = web.put("/m.mar", DATA).replace("127.0.0.1", "localhost")
    monkeypatch.setattr(http_source, "is_private", lambda addresses: False)
    outside = web.redirect("/away", there)
    assert "to which a public host may not redirect" in failed(root, outside, ArchiveNotFound)
    monkeypatch.setattr(http_source, "proxies", lambda: {(ipaddress.ip_address("127.0.0.1"), port)})
    assert fetched(root, outside) == DATA


def test_a_redirect_to_nowhere(root: Path, web: FileServer) -> None:
    assert "(it redirects to what is not a URL)" in failed(root, web.redirect("/away", "http://[bad/m.mar"))


def test_redirects_end(root: Path, web: FileServer) -> None:
    url = web.redirect("/round", "/round")
    assert failed(root, url).endswith("(it redirects more than 5 times)")


def test_what_is_not_there(root: Path, web: FileServer) -> None:
    url = f"{web.url}/absent.mar"
    assert failed(root, url) == f"Failed to download archive from: {url} (HTTP 404 Not Found)"
    assert failed(root, f"file://{root}/absent.mar").endswith("(No such file or directory)")
    assert "Failed to download archive from: http://no-such-host.invalid/m.mar" in failed(
        root, "http://no-such-host.invalid/m.mar"
    )


def test_no_server_listens(root: Path) -> None:
    with file_server() as server:
        url = f"{server.url}/m.mar"
    assert failed(root, url).startswith(f"Failed to download archive from: {url} (")


def test_a_connection_that_breaks(root: Path, web: FileServer) -> None:
    assert "without sending complete message body" in failed(root, web.truncate("/short.mar", DATA))


def test_more_than_the_limit(root: Path, web: FileServer) -> None:
    limit = "(it is larger than max_download_size, 1000 bytes)"
    for url in (web.put("/m.mar", DATA), web.announce("/m2.mar", 1001), web.endless("/m3.mar")):
        assert failed(root, url, max_download_size=1000).endswith(limit)


def test_exactly_the_limit(root: Path, web: FileServer) -> None:
    assert fetched(root, web.put("/m.mar", DATA), max_download_size=len(DATA)) == DATA


def test_it_takes_too_long(root: Path, web: FileServer) -> None:
    released = threading.Event()
    try:
        message = failed(root, web.hang("/slow.mar", released), download_timeout=1)
    finally:
        released.set()
    assert message.endswith("(it took longer than download_timeout, 1 s)")


def test_silence(root: Path, web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_source, "SILENCE", 0.2)
    released = threading.Event()
    try:
        assert failed(root, web.hang("/silent.mar", released)).endswith("(no answer within 0.2 s)")
    finally:
        released.set()


def test_what_is_not_a_file(root: Path) -> None:
    os.mkfifo(root.parent / "pipe.mar")
    assert "(it is neither a file nor a folder)" in failed(root, f"file://{root.parent}/pipe.mar")
    assert "(it is neither a file nor a folder)" in failed(root, "file:///dev/zero")


def test_a_full_disk(root: Path, web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("msx_frontend.archives.download._write_all", full)
    words = r"downloads: No space left on device \(it needs .*, and its disk has .* left\)\)"
    assert re.search(words, failed(root, web.put("/m.mar", DATA)))


def test_what_does_not_fit_is_not_begun(root: Path, web: FileServer, tmp_path: Path) -> None:
    """Downloads from a web server that says how much is to come, and of a file."""
    (tmp_path / "large.mar").write_bytes(bytes(1 << 20))
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        for url in (web.put("/m.mar", bytes(1 << 20)), f"file://{tmp_path}/large.mar"):
            words = r"it does not fit into .*: it needs 1\.0 MiB, and its disk has 6\d\.0 KiB left"
            assert re.search(words, failed(disk, url))


def test_keys_sign_only_when_asked(root: Path, web: FileServer) -> None:
    env = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_DEFAULT_REGION": "r"}
    both = Downloads(ServerConfig(), root / "downloads", env)
    url = web.put("/m.mar", DATA)
    run(both.fetch(ArchiveUrl.parse(url), root / "m.mar"))
    assert "authorization" not in web.asked[-1][1]
    run(both.fetch(ArchiveUrl.parse(url), root / "m.mar", signed=True))
    assert web.asked[-1][1]["authorization"].startswith("AWS4-HMAC-SHA256 Credential=A/")


# In the model store.


def store_of(root: Path, **settings: object) -> ModelStore:
    return ModelStore(root, StateFolder(root / ".msx", root), downloads(root, **settings))


async def fail_with(store: ModelStore, url: str, *, replace: bool = False) -> None:
    async with store.obtained(ArchiveUrl.parse(url), replace=replace) as found:
        raise KeyError("new bytes" if found.path.read_bytes() == DATA else "other bytes")


def test_a_download_is_under_its_name_until_the_block_fails(root: Path, web: FileServer) -> None:
    url = web.put("/sub/new.mar", DATA)

    async def test() -> None:
        store = store_of(root)
        async with store.obtained(ArchiveUrl.parse(f"{url}?version=2")) as found:
            assert found == (root / "new.mar", f"{url}?version=2")
        assert (root / "new.mar").read_bytes() == DATA
        with pytest.raises(Conflict, match=r"Model file already exists new\.mar"):
            async with store.obtained(ArchiveUrl.parse(url)):
                raise AssertionError
        async with store.obtained(ArchiveUrl.parse(url), reuse=True) as found:
            assert found.url == url
        with pytest.raises(KeyError, match="new bytes"):
            await fail_with(store, web.put("/sub/two.mar", DATA))
        assert not (root / "two.mar").exists()

    run(test())


def test_replacing_takes_back_what_fails(root: Path, web: FileServer) -> None:
    (root / "m.mar").write_text("old")
    url = web.put("/m.mar", DATA)

    async def test() -> None:
        store = store_of(root)
        with pytest.raises(KeyError, match="new bytes"):
            await fail_with(store, url, replace=True)
        assert (root / "m.mar").read_text() == "old"
        async with store.obtained(ArchiveUrl.parse(url), replace=True):
            pass
        assert (root / "m.mar").read_bytes() == DATA
        assert list((root / ".msx" / "downloads").iterdir()) == []

    run(test())


def test_two_at_once(root: Path, web: FileServer) -> None:
    released = threading.Event()
    url = web.hang("/m.mar", released)

    async def test() -> None:
        import asyncio

        store = store_of(root)

        async def obtain() -> None:
            async with store.obtained(ArchiveUrl.parse(url)):
                pass

        first = asyncio.ensure_future(obtain())
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await obtain()
        released.set()
        with pytest.raises(DownloadFailed, match="HTTP 404"):
            await first

    run(test())


@pytest.mark.parametrize("path", ["/", "/.msx", "/a%5C..\\b", "/.hidden.mar"])
def test_names_that_no_archive_has(root: Path, web: FileServer, path: str) -> None:
    async def test() -> None:
        async with store_of(root).obtained(ArchiveUrl.parse(web.url + path)):
            raise AssertionError

    with pytest.raises((DownloadFailed, ArchiveNotFound)):
        run(test())


def test_a_folder_elsewhere_is_used_where_it_is_if_it_is_allowed(root: Path) -> None:
    folder = root.parent / "elsewhere" / "m"
    folder.mkdir(parents=True)
    store, strict = store_of(root), store_of(root, allowed_urls=(re.compile("https://.*"),))
    for url in (str(folder), f"file://{folder}"):
        assert store.locate(ArchiveUrl.parse(url)) == folder
        with pytest.raises(ArchiveNotFound, match=r"does not match any allowed URL\(s\)"):
            strict.locate(ArchiveUrl.parse(url))
    (root / "own").mkdir()
    assert strict.locate(ArchiveUrl.parse(str(root / "own"))) == root / "own"


def test_forget_removes_what_no_other_model_came_from(root: Path, web: FileServer) -> None:
    path = pack_model(root)
    url = f"{web.url}/m.mar"

    async def test() -> None:
        store = store_of(root)
        await store.forget(ArchiveUrl.parse("m.mar"), [])
        await store.forget(ArchiveUrl.parse(str(root.parent)), [])
        await store.forget(ArchiveUrl.parse(url), [ArchiveUrl.parse("https://elsewhere/m.mar")])
        assert path.exists()
        await store.forget(ArchiveUrl.parse(url), [ArchiveUrl.parse("other.mar")])
        assert not path.exists()

    run(test())


def test_clean_throws_unfinished_downloads_away(root: Path) -> None:
    (root / ".msx" / "downloads").mkdir(parents=True)
    (root / ".msx" / "downloads" / "x.part").touch()
    run(store_of(root).clean())
    assert not (root / ".msx" / "downloads").exists()


def test_where_the_state_lies_apart_nothing_is_put_into_the_model_store(
    tmp_path: Path, root: Path, web: FileServer
) -> None:
    state = StateFolder(tmp_path / "state", root)
    (root / "ours.mar").write_text("x")
    before = sorted(root.iterdir())

    async def test() -> None:
        store = ModelStore(root, state, Downloads(ServerConfig(), state.downloads))
        url = web.put("/new.mar", DATA)
        async with store.obtained(ArchiveUrl.parse(url)) as found:
            assert found == (state.archives / "new.mar", url)
        for known in (url, "new.mar"):  # as a state or a snapshot names it
            assert store.locate(ArchiveUrl.parse(known)) == state.archives / "new.mar"
        async with store.obtained(ArchiveUrl.parse(url), reuse=True) as found:
            assert found.url == url
        async with store.obtained(ArchiveUrl.parse("new.mar")) as found:
            assert found.url == "new.mar"
        async with store.obtained(ArchiveUrl.parse(web.put("/sub/ours.mar", DATA)), reuse=True) as found:
            assert found.path == root / "ours.mar", "a file of that name in the store counts, as it always did"
        with pytest.raises(KeyError, match="new bytes"):
            await fail_with(store, web.put("/sub/two.mar", DATA))
        assert [path.name for path in state.archives.iterdir()] == ["new.mar"]
        await store.clean_downloads([ArchiveUrl.parse(url)])
        assert (state.archives / "new.mar").exists()
        await store.forget(ArchiveUrl.parse(url), [])
        assert list(state.archives.iterdir()) == []
        async with store.obtained(ArchiveUrl.parse(url)):
            pass
        await store.clean_downloads([ArchiveUrl.parse("ours.mar")])
        assert list(state.archives.iterdir()) == []
        assert sorted(root.iterdir()) == before

    run(test())


def test_beside_the_models_downloads_in_the_store_are_not_cleaned(root: Path) -> None:
    (root / "ours.mar").write_text("x")
    run(store_of(root).clean_downloads([]))
    assert (root / "ours.mar").exists()
