"""Fetching of one content: resumed, within limits, each file checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from msx_frontend.archives.hub import hub_download
from msx_frontend.archives.hub.content import HubContent, record, recorded
from msx_frontend.archives.hub.hub_download import HubDownload, patiently
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.remote import BrokenError, HubError, HubFile, HubListing

DATA = os.urandom(300_000)
URL = HubUrl.parse("hf://org/name")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_download, "PAUSES", (0.0,))


class FakeHub:
    """`breaks`: after how many bytes the next connections end; a negative number ends without an error."""

    def __init__(self, **files: bytes) -> None:
        self.data = files
        self.breaks: list[int] = []
        self.starts: list[int] = []

    def list_files(self) -> HubListing:
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in self.data.items()}
        return HubListing([HubFile(name, len(data), f"sha256:{digests[name]}") for name, data in self.data.items()])

    def detail(self, file: HubFile) -> HubFile:
        return file

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        self.starts.append(start)
        data = self.data[file.path][start:]
        if self.breaks:
            after = self.breaks.pop(0)
            yield data[: abs(after)]
            if after >= 0:
                raise BrokenError("connection reset")
        else:
            yield data[:1000]
            yield data[1000:]


def content(root: Path, hub: FakeHub) -> HubContent:
    return HubContent.of(root, URL, hub.list_files().files)


def fetch(root: Path, hub: FakeHub, most: int = 1 << 30) -> Path:
    wanted = content(root, hub)
    HubDownload(hub, wanted).fetch(most)
    return wanted.model


def test_whole(tmp_path: Path) -> None:
    model = fetch(tmp_path, FakeHub(a=DATA, b=b""))
    assert {path.name: path.read_bytes() for path in model.iterdir()} == {"a": DATA, "b": b""}
    assert model.name == "name"


def test_a_break_is_gone_on_from(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    hub.breaks = [1000, -500, 0]
    assert (fetch(tmp_path, hub) / "a").read_bytes() == DATA
    assert hub.starts == [0, 1000, 1500, 1500]


def test_what_has_come_stays_for_another_process(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA, b=DATA)
    hub.breaks = [1000, *[0] * hub_download.ATTEMPTS]
    with pytest.raises(HubError, match=r"a: connection reset, 5 times in a row; 1000 B of 585\.9 KiB have come"):
        fetch(tmp_path, hub)
    assert not content(tmp_path, hub).is_complete()
    hub.starts.clear()
    assert (fetch(tmp_path, hub) / "a").read_bytes() == DATA
    assert hub.starts == [1000, 0]


def test_a_part_that_does_not_belong_is_fetched_anew(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    part = content(tmp_path, hub).part
    part.mkdir(parents=True)
    (part / "a").write_bytes(b"x" * 1000)
    (part / "left").write_bytes(b"x")
    model = fetch(tmp_path, hub)
    assert [path.name for path in model.iterdir()] == ["a"]
    assert (model / "a").read_bytes() == DATA
    assert hub.starts == [1000, 0]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    wanted = content(tmp_path, hub)
    hub.data["a"] = bytes(len(DATA))
    with pytest.raises(HubError, match=r"a is damaged: its digest is not [0-9a-f]{64}"):
        HubDownload(hub, wanted).fetch(1 << 30)
    assert not wanted.is_complete()
    assert not (wanted.part / "a").exists()


def test_a_file_that_is_longer_than_said_is_refused(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    wanted = content(tmp_path, hub)
    hub.data["a"] = DATA + b"x"
    with pytest.raises(HubError, match="a has more bytes than the 300000 that the hub's listing says"):
        HubDownload(hub, wanted).fetch(1 << 30)
    hub.data["a"] = DATA
    assert (fetch(tmp_path, hub) / "a").read_bytes() == DATA


def test_the_limit_counts_all_files(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA, b=DATA)
    with pytest.raises(HubError, match="it has 600000 bytes, more than max_download_size, 599999 bytes"):
        fetch(tmp_path, hub, most=599_999)
    assert hub.starts == []


def test_what_does_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub(a=DATA)
    monkeypatch.setattr("shutil.disk_usage", lambda path: small_disk_usage())
    with pytest.raises(HubError, match=r"it does not fit into .*: it needs 293\.0 KiB, and its disk has"):
        fetch(tmp_path, hub)
    assert hub.starts == []


def small_disk_usage() -> os.stat_result:
    class Usage:
        free = 1000

    return Usage()  # type: ignore[return-value]


def test_links_are_not_followed(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    part = content(tmp_path, hub).part
    part.mkdir(parents=True)
    (tmp_path / "precious").write_bytes(b"")
    (part / "a").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        fetch(tmp_path, hub)
    assert (tmp_path / "precious").read_bytes() == b""


def test_the_same_content_has_the_same_times_everywhere(tmp_path: Path) -> None:
    hub = FakeHub(a=DATA)
    one, two = (fetch(tmp_path / name, hub) / "a" for name in ("one", "two"))
    assert one.stat().st_mtime_ns == two.stat().st_mtime_ns
    hub.data["a"] = DATA[::-1]
    assert (fetch(tmp_path / "one", hub) / "a").stat().st_mtime_ns != two.stat().st_mtime_ns


def test_a_content_is_found_by_what_was_asked_for_and_by_its_commit(tmp_path: Path) -> None:
    hub, commit = FakeHub(a=DATA), "c" * 40
    assert recorded(tmp_path, URL) is None
    fetch(tmp_path, hub)
    record(content(tmp_path, hub), URL, commit)
    pinned = HubUrl("hf", "org/name", commit)
    found = [recorded(tmp_path, url) for url in (URL, pinned)]
    assert [one and (one[0].id, one[1]) for one in found] == [(content(tmp_path, hub).id, commit)] * 2
    assert recorded(tmp_path, HubUrl("hf", "org/name", "v2")) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"": 3}', '{"": ["a"]}'])
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / URL.folder).mkdir()
    (tmp_path / URL.folder / "refs.json").write_text(text)
    assert recorded(tmp_path, URL) is None


def test_asking_again_ends() -> None:
    def broken() -> None:
        raise BrokenError("reset")

    with pytest.raises(HubError, match="reset, 5 times in a row"):
        patiently(broken)
