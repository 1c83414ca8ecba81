"""Contents reach a node: whole, once, resumed after breaks, and refused in words where they cannot."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msx_archiver import record
from msx_ray.agent.contents import SHARED, fetch
from msx_ray.agent.fetching import ATTEMPTS, Fetching
from msx_ray.agent_messages import NodeContent
from msx_ray.content_source import Offered, offer
from msx_ray.listing import ListedFile, Listing, digest_of, encode
from tests.disks import small_disk
from tests.ray.content_link import Link, files_of, make_model, served


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node does not see the server's disk."""
    monkeypatch.setenv(SHARED, "false")
    monkeypatch.setattr("msx_ray.agent.fetching.PAUSES", (0.0,))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model")


def fetched(offered: Offered, root: Path, cuts: Iterator[int] | None = None, phases: list[str] | None = None) -> Path:
    async def run() -> Path:
        async with served(offered, cuts=cuts) as link:
            return await fetch(offered.content, link.dial, root, ([] if phases is None else phases).append)

    return asyncio.run(run())


def test_a_content_is_the_same_on_the_node(model: Path, tmp_path: Path) -> None:
    phases: list[str] = []
    found = fetched(offer(model), tmp_path / "node", phases=phases)
    assert files_of(found) == files_of(model)
    assert (found / "handler.py").stat().st_mode & 0o111
    assert not (found / "weights/a.ckpt").stat().st_mode & 0o111
    assert phases[0].startswith("fetching the archive: ")
    assert phases[0].endswith(" of 2.9 MiB")


def test_the_second_rank_asks_for_nothing(model: Path, tmp_path: Path) -> None:
    async def run() -> None:
        offered = offer(model)
        async with served(offered) as link:
            both = (fetch(offered.content, link.dial, tmp_path / "node", print) for _ in range(2))
            first, second = await asyncio.gather(*both)
            assert first == second
            assert link.dialled == 1

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
def test_a_broken_connection_is_resumed(model: Path, tmp_path: Path, seed: int) -> None:
    """At any byte: in a head, in the listing, in a file; half of them bring nothing."""
    chance = random.Random(seed)
    cuts = iter([chance.choice([chance.randint(0, 6), chance.randint(7, 400), 1_200_000]) for _ in range(12)])
    found: Path | None = None
    broke: list[str] = []
    for _ in range(12):
        try:
            found = fetched(offer(model), tmp_path / "node", cuts)
            break
        except OSError as error:
            broke.append(str(error))
    assert all("connections in a row broke without a byte" in one for one in broke)
    assert found is not None
    assert files_of(found) == files_of(model)


def test_a_server_that_never_answers_is_given_up(model: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=rf"{ATTEMPTS} connections in a row broke without a byte .* is kept"):
        fetched(offer(model), tmp_path / "node", iter([0] * ATTEMPTS))


def test_a_check_that_lasts_is_told(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gives up agents that say nothing."""
    told = threading.Event()
    digest = record.digest

    def slow(path: Path) -> str:
        assert told.wait(30)
        return digest(path)

    async def run() -> None:
        offered = offer(model)
        async with served(offered) as link:
            fetching = Fetching(offered.content, link.dial, heard)
            await fetching.files(await fetching.listing(), tmp_path / "node")
            fetching.close()

    def heard(phase: str) -> None:
        if phase == "checking empty of the archive":
            told.set()

    monkeypatch.setattr("msx_ray.agent.fetching.record.digest", slow)
    monkeypatch.setattr("msx_ray.agent.fetching.TELL_AGAIN", 0.01)
    asyncio.run(run())


def test_what_has_arrived_is_not_asked_for_again(model: Path, tmp_path: Path) -> None:
    cuts = iter([1_200_000] + [0] * (ATTEMPTS - 1))
    with pytest.raises(OSError, match="broke without a byte"):
        fetched(offer(model), tmp_path / "node", cuts)
    phases: list[str] = []
    fetched(offer(model), tmp_path / "node", phases=phases)
    assert phases[0].split(": ")[1].startswith("2.0 MiB of")


def test_a_partial_file_that_was_damaged_is_fetched_again(model: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="broke without a byte"):
        fetched(offer(model), tmp_path / "node", iter([1_200_000] + [0] * (ATTEMPTS - 1)))
    (partial,) = (tmp_path / "node").rglob("a.ckpt")
    with partial.open("r+b") as file:
        file.write(b"damaged")
    assert files_of(fetched(offer(model), tmp_path / "node")) == files_of(model)


def test_a_kept_content_that_was_changed_is_fetched_again(model: Path, tmp_path: Path) -> None:
    found = fetched(offer(model), tmp_path / "node")
    (found / "handler.py").write_text("y = 2\n")
    assert files_of(fetched(offer(model), tmp_path / "node")) == files_of(model)


def test_a_file_that_changes_on_the_server_is_named(model: Path, tmp_path: Path) -> None:
    offered = offer(model)
    (model / "weights/a.ckpt").write_bytes(b"other")
    with pytest.raises(OSError, match=r"weights/a.ckpt of the archive .* it has changed since .*register the model"):
        fetched(offered, tmp_path / "node")


def test_a_folder_that_vanished_from_the_server_is_named(model: Path, tmp_path: Path) -> None:
    offered = offer(model)
    model.rename(tmp_path / "gone")
    with pytest.raises(OSError, match=r"empty of the archive in .*model cannot be read on the server: No such file"):
        fetched(offered, tmp_path / "node")
    with pytest.raises(OSError, match="is not there any more"):
        offer(model)


@pytest.mark.parametrize("path", ["/etc/passwd", "../out", "a/../../out", "C:x", "a\\b", "", "x\0y"])
def test_a_hostile_listing_is_refused(tmp_path: Path, path: str) -> None:
    encoded = encode(Listing("", [ListedFile(path, 3, False, "", 1)]))
    offered = Offered(NodeContent(digest_of(encoded), str(tmp_path)), Listing("", []), encoded)
    with pytest.raises(OSError, match=r"the archive is refused: .*member"):
        fetched(offered, tmp_path / "node")
    assert not [file for file in (tmp_path / "node").rglob("*") if file.is_file() and file.name != ".uses"]


def test_an_altered_listing_is_refused(model: Path, tmp_path: Path) -> None:
    offered = offer(model)
    offered.encoded = offered.encoded.replace(b"handler", b"handleR")
    with pytest.raises(OSError, match="was altered on its way"):
        fetched(offered, tmp_path / "node")


def test_requirements_of_another_python_are_refused(model: Path, tmp_path: Path) -> None:
    encoded = encode(Listing("Python 3.7 on linux-s390x", []))
    offered = Offered(NodeContent(digest_of(encoded), str(model), "requirements"), Listing("", []), encoded)
    with pytest.raises(OSError, match=r"installed for Python 3.7 on linux-s390x, and this node has Python 3"):
        fetched(offered, tmp_path / "node")


def test_a_full_disk_is_named_before_anything_is_fetched(model: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "node", 1 << 20) as node:
        with pytest.raises(
            OSError, match=r"contents needs .* MiB for the archive, and its disk has .* left: make room"
        ):
            fetched(offer(model), node)
        assert not list(node.rglob("a.ckpt"))


def test_a_disk_that_fills_meanwhile_is_named(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_ray.agent.node_cache.NodeCache.check_room", lambda *given: None)
    with (
        small_disk(tmp_path / "node", 1 << 20) as node,
        pytest.raises(OSError, match=r"contents cannot be written: No space left .*: make room, or set MSX_NODE_CACHE"),
    ):
        fetched(offer(model), node)


def test_what_is_not_used_makes_room(tmp_path: Path) -> None:
    """Contents that another process uses stay."""
    with small_disk(tmp_path / "node", 60 << 20) as node:
        old, held, new = (make_model(tmp_path / name, size) for name, size in SIZES.items())
        with fetching_process(old, node) as process:
            kept = Path(process.told())
        with fetching_process(held, node) as process:
            used = Path(process.told())
            found = fetched(offer(new), node)
            assert files_of(found) == files_of(new)
            assert used.is_dir()
            assert not kept.exists()


SIZES = {"old": 12 << 20, "held": 11 << 20, "new": 30 << 20}

_FETCH = """
import asyncio, sys
from pathlib import Path
from msx_ray.agent.contents import fetch
from msx_ray.content_source import offer
from tests.ray.content_link import served

async def main():
    offered = offer(Path(sys.argv[1]))
    async with served(offered) as link:
        async def dial():
            print("dialled", file=sys.stderr, flush=True)
            return await link.dial()
        print(await fetch(offered.content, dial, Path(sys.argv[2]), lambda phase: None), flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


class Fetcher:
    def __init__(self, model: Path, node: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _FETCH, str(model), str(node)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def told(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        return self.process.communicate(timeout=60)[1]


@contextmanager
def fetching_process(model: Path, node: Path) -> Iterator[Fetcher]:
    fetcher = Fetcher(model, node)
    try:
        yield fetcher
    finally:
        fetcher.end()


def test_two_processes_of_a_node_fetch_one_copy(model: Path, tmp_path: Path) -> None:
    fetchers = [Fetcher(model, tmp_path / "node") for _ in range(2)]
    first, second = (one.told() for one in fetchers)
    assert first == second
    assert files_of(Path(first)) == files_of(model)
    assert sorted(one.end() for one in fetchers) == ["", "dialled\n"]


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", 50 << 20)
    fetcher = Fetcher(model, tmp_path / "node")
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size for file in (tmp_path / "node").rglob("a.ckpt")):
        assert time.monotonic() < deadline
    os.kill(fetcher.process.pid, signal.SIGKILL)
    fetcher.end()
    assert files_of(fetched(offer(model), tmp_path / "node")) == files_of(model)


def test_a_shared_volume_is_used_in_place(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARED)
    offered = offer(model)

    async def run() -> Path:
        return await fetch(offered.content, Link(1, iter(())).dial, tmp_path / "node", print)

    assert asyncio.run(run()) == model


def test_each_content_has_a_folder_for_what_is_compiled(tmp_path: Path) -> None:
    async def run() -> Path:
        return await fetch(NodeContent("ab", "/server", "compiled"), Link(1, iter(())).dial, tmp_path, print)

    assert asyncio.run(run()) == tmp_path / "contents" / "compiled-ab"
